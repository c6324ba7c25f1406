"""One-line bars: the session's status above the panes, the timeline and the footer of keys below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import events
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip

from rlgpt.console import keymap
from rlgpt.console.panes.painted import Painted
from rlgpt.console.shell import shell_of
from rlgpt.console.view.text import Line, Span, width_of


class Bar(Painted):
    """Lines that are painted without a cursor or scrolling."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []

    def set_lines(self, lines: Sequence[Line]) -> None:
        if list(lines) != self._lines:
            self._lines = list(lines)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return self.painted(self._lines[y] if y < len(self._lines) else (), self.size.width)


class TimelineBar(Bar):
    """Click to seek."""

    class Sought(Message):
        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.capture_mouse()
        self._seek(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self:
            self._seek(event.x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()

    def _seek(self, x: int) -> None:
        """`x`: a cell of the bar with its padding, which the line of time does not have."""
        share = (x - self.gutter.left) / max(self.size.width - 1, 1)
        self.post_message(self.Sought(min(max(share, 0.0), 1.0)))


class Footer(Bar):
    """The keys that do something here and now, in the table's order, as many as fit."""

    def __init__(self) -> None:
        super().__init__(id="footer")
        self._spots: list[tuple[int, int, str]] = []
        self.labels: Mapping[str, str] = {}
        """Key id -> what it does in the state of the screen, where that is not the table's label."""

    def on_mount(self) -> None:
        self.app.screen_change_signal.subscribe(self, self._take_turn)

    def _take_turn(self, front: Screen[object]) -> None:
        """Below a dialog the keys are the dialog's."""
        if front is self.screen or front.is_modal:
            self.call_after_refresh(self.update_hints)  # a new dialog has no widgets yet, which its keys depend on

    def update_hints(self) -> None:
        screen = self.app.screen
        active = {b.binding.id: b for b in screen.active_bindings.values() if b.enabled and b.binding.id}
        hints = sorted((k for k in keymap.KEYS if k.hint and k.id in active), key=lambda k: k.hint)
        overrides = shell_of(self).user_keys
        own_keys = {keymap.written(k, overrides) for k in hints if k.scope not in ("app", "list")}
        hints = [k for k in hints if k.scope not in ("app", "list") or keymap.written(k, overrides) not in own_keys]
        tail = [k for k in hints if k.hint >= 80]
        own = [k for k in hints if k.hint < 80]
        width = self.size.width
        reserved = sum(width_of(self._hint(k, overrides)) for k in tail)
        spans: list[Span] = []
        self._spots = []
        for key in [*own, *tail]:
            part = self._hint(key, overrides)
            size = width_of(part)
            room = width - (reserved if key not in tail else 0)
            if width_of(spans) + size > room:
                continue
            start = width_of(spans)
            self._spots.append((start, start + size, key.id))
            spans += part
        self.set_lines([tuple(spans)])

    def on_click(self, event: events.Click) -> None:
        for start, stop, name in self._spots:
            if start <= event.x < stop:
                binding = next((b for b in self.app.screen.active_bindings.values() if b.binding.id == name), None)
                if binding:
                    self.app.call_later(self.app.run_action, binding.binding.action, binding.node)

    def on_resize(self, event: events.Resize) -> None:
        self.update_hints()

    def _hint(self, key: keymap.Key, overrides: dict[str, str]) -> list[Span]:
        label = self.labels.get(key.id, key.label)
        return [Span(" " + keymap.written(key, overrides), "key"), Span(f" {label} ", "dim")]
