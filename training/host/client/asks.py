"""Encodes asks as flags and messages, and logs them so that a lane can be rebuilt after a death."""

from __future__ import annotations

from collections.abc import Sequence

from rlgpt.training.host import wire
from rlgpt.training.host.api import Answer, Ask


class LaneLog:
    """What it takes to rebuild one lane: its asks from the last whole view on, and its episode's start."""

    __slots__ = ("action", "asks", "is_open", "start")

    def __init__(self) -> None:
        self.start: Ask | None = None
        self.asks: list[Ask] = []
        self.is_open = False
        self.action = wire.NO_ACTION
        """Which action runs, as in an answer."""

    def add(self, ask: Ask, answer: Answer) -> None:
        if ask.open is None and not ask.episode_start:
            self.asks.append(ask)
        else:
            self.asks = [ask]
            self.is_open = ask.open is not None
            if ask.episode_start:
                self.start = ask
        if answer.end is not None:
            self.is_open = False
        elif answer.command is not None:
            self.action = answer.action

    def replay(self, with_call: bool) -> list[tuple[Ask, int]]:
        """The asks with the flags that bring a lane back; `with_call` false leaves the call out."""
        mask = wire.REBUILD if with_call and self.is_open else wire.START | wire.WHOLE
        replayed = [(ask, flags_of(ask) & mask) for ask in self.asks]
        if self.start is not None and self.start is not self.asks[0]:
            replayed.insert(0, (self.start, wire.START | wire.WHOLE))
        return replayed


def flags_of(ask: Ask) -> int:
    """The wire's flags of one ask."""
    _, _, opens, resume, start, predicates, available, reward, _ = ask
    if opens is None and not (start or predicates or available or reward):
        return resume << 1
    flags = resume << 1 | predicates << 4 | available << 5 | reward << 6
    if start:
        flags = (flags | wire.START | wire.WHOLE) & ~wire.RESUME
    if opens is not None:
        flags = (flags | wire.OPEN | wire.WHOLE) & ~wire.RESUME
    return flags


def tick_body(asks: Sequence[Ask], flags: Sequence[int] | None) -> bytes:
    """The message of a tick; `flags` are those of the asks if not given."""
    pack = wire.ASK.pack
    parts = [len(asks).to_bytes(4, "little")]
    views = []
    flag_values = iter(flags or ())
    for ask in asks:
        lane, view, opens, resume, start, predicates, available, reward, step = ask
        if flags is not None:
            flag = next(flag_values)
        elif resume and opens is None and not (start or predicates or available or reward):
            flag = wire.RESUME
        else:
            flag = flags_of(ask)
        parts.append(pack(lane, opens or 0, flag, step, len(view)))
        views.append(view)
    return b"".join(parts + views)
