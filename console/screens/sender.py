"""The part of `Operator` that other screens use: the session's state, and sending a command."""

from __future__ import annotations

from typing import Any, Protocol

from rlgpt.console.view.moment import Moment
from rlgpt.store.row_types import SessionRow


class Sender(Protocol):
    """The part of `Operator` that the screens opened by it use."""

    @property
    def moment(self) -> Moment | None: ...

    @property
    def session(self) -> SessionRow:
        """The row of the session; empty before it was read."""

    def send(self, kind: str, payload: dict[str, Any] | None = None, revision: int | None = None) -> bool:
        """Queue a command; says what happened."""
