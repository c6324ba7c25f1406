"""What a screen needs of the session below it: what is known of it, and a way to send it a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rlgpt.console.view.moment import Moment


class Sender(Protocol):
    """The `Operator`, as the screens see it that it opens."""

    @property
    def moment(self) -> Moment | None: ...

    @property
    def session(self) -> Mapping[str, Any]:
        """The session's row; {} before it was read."""

    def send(self, kind: str, payload: dict[str, Any] | None = None, revision: int | None = None) -> bool:
        """Queue a command; says what happened."""
