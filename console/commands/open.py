"""Opening the console in this terminal: the only place where the command line meets the Textual app."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlgpt.console import signals
from rlgpt.store.home import home

if TYPE_CHECKING:
    from rlgpt.store.folder import SessionFolder


def open_console(
    session: SessionFolder | None = None,
    *,
    replay: bool = False,
    read_only: bool = False,
    begin: Callable[[], str] | None = None,
) -> int:
    """The list of sessions, or one session live or in replay; returns when the operator leaves. `begin` makes the
    session that is to be opened while the console is there already, and returns its id."""
    from rlgpt.console.app import run

    signals.end_at_once()
    return run(
        home(), _name_of(session) if session else None, replay=replay, read_only=read_only, begin=begin, tour=True
    )


def _name_of(session: SessionFolder) -> str:
    """Its id, or where it lies if that is outside the store."""
    from rlgpt.store.folder import root

    return session.id if session.path.parent == root() else str(session.path)
