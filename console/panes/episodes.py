"""The episodes pane: what was played, failing ones first; Enter watches one in the world pane."""

from __future__ import annotations

from textual.message import Message

from rlgpt.console.panes.lines import Lines
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.view import episodes
from rlgpt.console.view.episodes import Episode
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry


class EpisodesPane(ListPane):
    item = ""
    """The sub-action to which the list is narrowed, "" for all."""

    class Watch(Message):
        """An episode should be shown frame by frame."""

        def __init__(self, film: int | None) -> None:
            super().__init__()
            self.film = film
            """seq of its film's place, None where none is stored."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._episodes_cache: tuple[object, list[Episode]] = (None, [])
        self._entries_cache: tuple[object, list[Entry]] = (None, [])
        self._counts = (0, 0)
        """Episodes that the filter leaves, and of how many."""

    def entries_of(self, moment: Moment) -> list[Entry]:
        read_key = _row_counts(moment)
        if self._episodes_cache[0] != read_key:
            self._episodes_cache = (read_key, episodes.episodes(moment))
        ended = moment.history.status == "ended"
        # The cursor's entry is no part of it: the cursor can only move to entries that the list already has.
        entries_key = (read_key, self.item, self.width, ended, self.filter)
        if self._entries_cache[0] != entries_key:
            every, item, wanted = self._episodes_cache[1], self.item, self.filter
            shown = episodes.entries(every, item, self.width, ended=ended, wanted=wanted, kept=self._cursor_key)
            self._entries_cache = (entries_key, shown)
            self._counts = (len(episodes.found(every, item, wanted)), len(episodes.chosen(every, item)))
        return self._entries_cache[1]

    def found(self, moment: Moment) -> str:
        """Of all episodes, also those that the pane has no room for."""
        return "{} of {}".format(*self._counts)

    def summary(self) -> str:
        return f"at {self.item}, esc: all" if self.item else ""

    def look_at(self, item: str) -> None:
        if item != self.item:
            self.item = item
            self.redraw()
            self.action_edge(False)

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        film = message.entry.fields["film"]
        assert film is None or isinstance(film, int)
        self.post_message(self.Watch(film))


def _row_counts(m: Moment) -> tuple[object, ...]:
    """Numbers of rows, which are equal for two moments with the same episodes, because rows are only added."""
    h = m.history
    hidden = tuple(len(run.hidden) for run in h.runs.values())
    counts = (h.counts.get("trial"), h.counts.get("evaluation"), len(m.episodes), m.films[-1:])
    return (h.session.get("session_id"), counts, hidden)
