"""A checkbox with a tick or nothing in it: Textual's shows the same X for both states, in different colours."""

from __future__ import annotations

from textual.widgets import Checkbox


class Check(Checkbox):
    def __init__(self, label: str, value: bool = False, *, id: str, compact: bool = False) -> None:
        self.BUTTON_INNER = _inner(value)
        super().__init__(label, value, id=id, compact=compact)

    def watch_value(self) -> None:
        self.BUTTON_INNER = _inner(self.value)
        super().watch_value()


def _inner(value: bool) -> str:
    return "✓" if value else "□"
