"""Dead loops: episodes that only repeat themselves (method.md, "Dead loop")."""

from __future__ import annotations

from collections import deque
from typing import Any

SHARE = 0.1
"""Distinct progress keys per window at or below which an agent is looping."""


class DeadLoopWatch:
    """Watches one episode at a time.

    The window holds the last W = min(200, horizon // 2) env steps neither asleep nor at a declared wait.
    The agent is looping while the window is full, at most `SHARE` of its keys are distinct and the world
    has reported nothing new in it.
    """

    __slots__ = (
        "_counts", "_keys", "_limit", "_looping_steps", "_novelty", "_quiet", "_steps", "looping", "window"
    )  # fmt: skip

    def __init__(self, horizon: int) -> None:
        self.window = max(1, min(200, horizon // 2))
        self._limit = SHARE * self.window
        self._keys: deque[int] = deque()
        self._counts: dict[int, int] = {}
        self.start(0)

    def start(self, novelty: int) -> None:
        """A new episode; `novelty` is `Env.novelty()` after its reset."""
        self._keys.clear()
        self._counts.clear()
        self._novelty = novelty
        self._quiet = 0
        self._steps = 0
        self._looping_steps = 0
        self.looping = False

    def step(self, key: int, novelty: int, waiting: bool) -> None:
        """After every env step."""
        self._steps += 1
        if not waiting:
            counts = self._counts
            self._keys.append(key)
            counts[key] = counts.get(key, 0) + 1
            if novelty != self._novelty:
                self._novelty, self._quiet = novelty, 0
            else:
                self._quiet += 1
            if len(self._keys) > self.window:
                old = self._keys.popleft()
                if counts[old] == 1:
                    del counts[old]
                else:
                    counts[old] -= 1
            self.looping = self._quiet >= self.window and len(counts) <= self._limit and len(self._keys) == self.window
        self._looping_steps += self.looping

    def dead(self, by_time: bool) -> bool:
        """Whether the episode, ended now, was a dead loop; `by_time`: its horizon ended it."""
        return (self.looping and by_time) or 2 * self._looping_steps > self._steps

    def save(self) -> list[Any]:
        """Plain data; `restore` continues the episode."""
        return [list(self._keys), self._novelty, self._quiet, self._steps, self._looping_steps, self.looping]

    def restore(self, state: list[Any]) -> None:
        keys, self._novelty, self._quiet, self._steps, self._looping_steps, self.looping = state
        self._keys = deque(keys)
        self._counts = {}
        for key in keys:
            self._counts[key] = self._counts.get(key, 0) + 1
