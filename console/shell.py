"""The protocol of the app that screens and panes use, so that none of them imports the app."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from textual.dom import DOMNode
from textual.screen import Screen

from rlgpt.console.palette import Palette
from rlgpt.console.preferences import Preferences

if TYPE_CHECKING:
    from rlgpt.console.view.news import Severity

Answer = TypeVar("Answer")

LIVE_BELOW = "live-below"
"""CSS class of a screen below which a session goes on being drawn."""


class Shell(Protocol):
    """The part of the app that is the console's own. What Textual's `App` has, such as `push_screen`, is `self.app`."""

    home: Path
    read_only: bool
    clock: Callable[[], float]
    preferences: Preferences
    user_keys: dict[str, str]
    palette: Palette

    def tell(self, sentence: str, severity: Severity = "information", *, bell: bool = False) -> None:
        """Show a notification."""

    def hints(self) -> None:
        """Bring the footer up to date with the state."""

    def open_session(
        self, ident: str, *, replay: bool = False, cursor: int | None = None, begun: bool = False
    ) -> None:
        """`begun`: its worker was started a moment ago and may not hold the session yet."""

    def settled(self) -> None:
        """What is loaded by now stays until the console is left."""

    def show_tour(self) -> None:
        """Explain the console to a person who opens it for the first time."""

    def set_terminal_title(self, words: str) -> None: ...

    def use_theme(self, name: str) -> None: ...

    def action_leave(self) -> None:
        """One step back, or out of the console."""

    def action_yank(self) -> None:
        """Copy what the focused widget offers."""

    def push_screen(
        self, screen: Screen[Answer], callback: Callable[[Answer | None], None] | None = None
    ) -> object: ...

    def call_from_thread(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...

    def run_worker(self, work: Any, *, thread: bool = False, exit_on_error: bool = True) -> Any: ...


def shell_of(node: DOMNode) -> Shell:
    """The app of a screen or widget. There is one app, `ConsoleApp`, and mypy checks there that it is a shell."""
    return cast(Shell, node.app)
