"""A screen that is left before it is made, or before what it waits for is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import Screen

if TYPE_CHECKING:
    _Screen = Screen[Any]
else:
    _Screen = object  # Textual takes the style of a widget from the first base that is a widget


class Leavable(_Screen):
    """Stands before the base of every screen: it is told of its mounting only while it stays.

    Textual composes nothing in a screen that is being removed, or in an app that ends, and sends Mount all the same:
    the widgets that `on_mount` asks for are not there. Seen where an operator leaves in the moment in which a session
    is opened. And Textual's `dismiss` takes away the screen on top, whichever it is: an answer that comes when the
    operator has left the form would close the screen below it.
    """

    async def on_event(self, event: events.Event) -> None:
        if not (isinstance(event, events.Mount) and self.is_left):
            await super().on_event(event)

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Take this screen away, with what was opened above it; nothing if it was left."""
        if self.is_left:
            return AwaitComplete()
        while self.app.screen is not self:
            self.app.pop_screen()
        return super().dismiss(result)

    @property
    def is_left(self) -> bool:
        """Textual's `is_attached` stays true of a screen that was popped."""
        return not (self.app.is_running and self.is_attached and self in self.app.screen_stack)
