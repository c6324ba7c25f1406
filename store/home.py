"""Where sessions live: `RLGPT_HOME`, else the platform's data folder for rlgpt."""

from __future__ import annotations

import os
from pathlib import Path

from rlgpt.store.errors import BadPlace

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
    """The folder with `sessions/`, `catalog.db` and `rlgpt.toml`; it need not exist yet. Raises BadPlace for a user
    without a home folder, such as one that only a container's start has named."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return named_path(chosen).absolute()
    import platformdirs  # late: most processes of a session are told their folder

    try:
        return Path(platformdirs.user_data_dir("rlgpt", appauthor=False))
    except RuntimeError as error:
        raise BadPlace(f"this user has no home folder: set HOME, or {VARIABLE} to a folder for sessions") from error


def cache() -> Path:
    """The folder for what can be made again: compiled code. Raises BadPlace."""
    import platformdirs

    try:
        return Path(platformdirs.user_cache_dir("rlgpt"))
    except RuntimeError:  # no home folder
        return home() / "cache"


def read_toml(path: Path) -> dict[str, object]:
    """What a TOML file of the operator says; a mark before its first letter, as editors of Windows set it, is no part
    of it. Raises OSError, and ValueError whose sentence says what in it is wrong."""
    import tomllib  # late: most processes of a session read no such file

    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except RecursionError as error:
        raise ValueError("its brackets are nested too deeply") from error
