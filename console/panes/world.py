"""The world pane: stored frames of an episode, drawn here; the newest, or scrubbed by hand."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.timer import Timer

from rlgpt.console.keymap import bindings, short
from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.shell import shell_of
from rlgpt.console.view import world
from rlgpt.console.view.episodes import chosen, episodes
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry

FRAMES_PER_SECOND = 4.0


class WorldPane(ListPane):
    BINDINGS: ClassVar[list[BindingType]] = bindings("world")
    cursor_shown = False
    filters = False

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._chosen: world.Cursor | None = None
        """The frame held, None: the newest up to the cursor of the session."""
        self._playing: Timer | None = None

    def entries_of(self, moment: Moment) -> list[Entry]:
        size = self.scrollable_content_region.size
        return world.entries(moment, self._chosen, max(size.width, 8), max(size.height, 4))

    def summary(self) -> str:
        if self._chosen is None:
            return "newest"
        return "playing" if self._playing else f"{short('world.newest', shell_of(self).user_keys)}: newest"

    def action_step(self, by: int) -> None:
        self._stop()
        if self.moment:
            self._chosen = world.moved(self.moment, self._chosen, by)
            self.redraw()

    def action_episode(self, by: int) -> None:
        self._stop()
        if self.moment:
            self._chosen = world.other_film(self.moment, self._chosen, by)
            self.redraw()

    def show_film(self, seq: int) -> None:
        """Show the end of an episode; playing begins at its beginning."""
        self._stop()
        self._chosen = world.Cursor(seq, world.END)
        self.redraw()

    def look_at(self, item: str) -> None:
        """The failing episode of the sub-action that can be watched, if there is one."""
        self._stop()
        if not item:
            self._chosen = None
        elif self.moment is not None:
            of_item = chosen(episodes(self.moment), item)
            if of_item and of_item[0].film is not None:
                self._chosen = world.Cursor(of_item[0].film, world.END)
        self.redraw()

    def action_newest(self) -> None:
        self._stop()
        self._chosen = None
        self.redraw()

    def action_play_episode(self) -> None:
        if self._playing:
            self._stop()
        elif self.moment and (first := world.first_of_film(self.moment, self._chosen)) is not None:
            self._chosen = first
            self._playing = self.set_interval(1 / FRAMES_PER_SECOND, self._tick)
        self.redraw()

    def _tick(self) -> None:
        if self.moment is None:
            return
        before = self._chosen
        self._chosen = world.moved(self.moment, before, 1, inside=True)
        if self._chosen == before:
            self._stop()
        self.redraw()

    def _stop(self) -> None:
        if self._playing:
            self._playing.stop()
            self._playing = None

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        """Entries of this pane cannot be folded."""
