"""Opening the console in this terminal: the only place where the command line meets the Textual app."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rlgpt.console.commands.failure import Exit, Failure

if TYPE_CHECKING:
    from rlgpt.store.folder import SessionFolder


def open_console(session: SessionFolder | None = None, *, replay: bool = False, read_only: bool = False) -> int:
    """The list of sessions, or one session live or in replay; returns when the operator leaves."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure(
            "the console needs a terminal; without one use `rlgpt sessions`, `rlgpt show ID` or "
            "`rlgpt run TASK --headless`, each with --json for programs.",
            Exit.USAGE,
        )
    if os.environ.get("TERM", "") in ("dumb", "unknown"):
        raise Failure(
            f"the terminal calls itself {os.environ['TERM']!r} and cannot show the console; set TERM, or use "
            "`rlgpt sessions` and `rlgpt show ID`.",
            Exit.UNAVAILABLE,
        )
    from rlgpt.console.app import Console

    console = Console(session.path if session else None, replay=replay, read_only=read_only)
    console.run()
    return console.return_code or Exit.OK
