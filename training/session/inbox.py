"""The command inbox, watched beside the loop: every command is marked `seen` within a second, in every phase.

What a command does happens in the loop's own thread, at the next safe point (`commands.apply_pending`).
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Literal

from rlgpt.store import events
from rlgpt.store.writer import Queued, Writer
from rlgpt.training.session.command_replay import place

EVERY = 0.25
"""Seconds between looks."""


class Inbox:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._cursor = 0
        self._pending: deque[Queued] = deque()
        decided = ("applied", "refused", "expired")
        self._decided_ids = {c.id for c in writer.history.commands.values() if c.state in decided}
        self._closing = threading.Event()
        self._looking = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="inbox", daemon=True)
        self.failure: BaseException | None = None
        self.look()

    def start(self) -> None:
        self._thread.start()

    def look(self) -> None:
        """Take what is new; commands that an earlier worker saw but did not decide come back."""
        with self._looking:
            self._look()

    def _look(self) -> None:
        for command in self._writer.commands_after(self._cursor):
            self._cursor = command.rowid
            if command.id in self._decided_ids:
                continue
            if command.id not in self._writer.history.commands:
                self._writer.event(fate(command, "seen", "", place(self._writer.history)))
            self._pending.append(command)

    def _watch(self) -> None:
        while not self._closing.wait(EVERY):
            try:
                self.look()
            except BaseException as error:  # the loop's thread raises it at its next poll
                self.failure = error
                return

    def pending(self) -> list[Queued]:
        """Commands seen and not yet decided, oldest first. Raises what stopped the watch, if anything did."""
        if self.failure:
            raise self.failure
        return list(self._pending)

    def decided(self, command: Queued) -> None:
        self._pending.remove(command)

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2)


def fate(
    command: Queued,
    state: Literal["seen", "applied", "refused", "expired"],
    reason: str,
    place: events.Place | None = None,
) -> events.Command:
    """The event that tells what became of a command."""
    return events.Command(
        id=command.id,
        kind=command.kind,
        author=command.author,
        revision=command.revision,
        payload=command.payload,
        state=state,
        reason=reason,
        place=place,
    )
