"""Where sessions live: `RLGPT_HOME`, else the platform's data folder for rlgpt."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "RLGPT_HOME"
GAMES_ON = "RLGPT_GAMES_ON"
"""Where a worker plays the games of a slow world (training/worlds/away)."""
FILE = "rlgpt.toml"
"""The settings of this machine's user, beside the sessions."""


def named_path(text: str) -> Path:
    """What a person wrote, with `~` as their home. The `~NAME` of nobody stays as it is, where `Path.expanduser`
    raises."""
    return Path(os.path.expanduser(text))  # noqa: PTH111


def here() -> Path:
    """The folder that a person works in; their home folder where it was removed meanwhile."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return named_path("~")


def home() -> Path:
    """The folder with `sessions/`, `catalog.db` and `rlgpt.toml`; it need not exist yet."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return named_path(chosen).absolute()
    import platformdirs  # late: most processes of a session are told their folder

    return Path(platformdirs.user_data_dir("rlgpt", appauthor=False))


def read_toml(path: Path) -> dict[str, object]:
    """What a TOML file of the operator says; a mark before its first letter, as editors of Windows set it, is no part
    of it. Raises OSError, and ValueError whose sentence says what in it is wrong."""
    import tomllib  # late: most processes of a session read no such file

    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except RecursionError as error:
        raise ValueError("its brackets are nested too deeply") from error
