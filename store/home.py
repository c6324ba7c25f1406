"""Where sessions live: `RLGPT_HOME`, else the platform's data folder for rlgpt."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "RLGPT_HOME"
GAMES_ON = "RLGPT_GAMES_ON"
"""Where a worker plays the games of a slow world (training/worlds/away)."""
FILE = "rlgpt.toml"
"""The settings of this machine's user, beside the sessions."""


def home() -> Path:
    """The folder with `sessions/`, `catalog.db` and `rlgpt.toml`; it need not exist yet."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        # Path.expanduser raises where nobody is called so
        return Path(os.path.expanduser(chosen)).absolute()  # noqa: PTH111
    import platformdirs  # late: most processes of a session are told their folder

    return Path(platformdirs.user_data_dir("rlgpt", appauthor=False))
