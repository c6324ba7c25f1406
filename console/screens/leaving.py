"""A screen that is left before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.screen import Screen

if TYPE_CHECKING:
    _Screen = Screen[Any]
else:
    _Screen = object  # Textual takes the style of a widget from the first base that is a widget


class Leavable(_Screen):
    """Stands before the base of every screen: it is told of its mounting only while it stays.

    Textual composes nothing in a screen that is being removed, or in an app that ends, and sends Mount all the same:
    the widgets that `on_mount` asks for are not there. Seen where an operator leaves in the moment in which a session
    is opened.
    """

    async def on_event(self, event: events.Event) -> None:
        if not (isinstance(event, events.Mount) and self._is_left()):
            await super().on_event(event)

    def _is_left(self) -> bool:
        return not (self.app.is_running and self.is_attached and self in self.app.screen_stack)
