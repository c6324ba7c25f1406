"""Policies that learn nothing, and how an action is drawn from masked logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.options.lane import Lane
from rlgpt.training.options.slots import ActionSpace


def draw(
    logits: NDArray[np.float32], mask: NDArray[np.bool_], space: ActionSpace, rng: np.random.Generator
) -> tuple[int, ...]:
    """One action for one row of logits (total,); one uniform number per head that is drawn.

    The heads after the first are inactive (index 0) under an option.
    """
    first = space.first
    action = _pick(logits[:first], mask[:first], rng.random())
    if len(space.action_nvec) == 1:
        return (action,)
    if action >= space.action_nvec[0]:
        return (action, *[0] * (len(space.action_nvec) - 1))
    result, start = [action], first
    for size in space.action_nvec[1:]:
        result.append(_pick(logits[start : start + size], mask[start : start + size], rng.random()))
        start += size
    return tuple(result)


def greedy(logits: NDArray[np.float32], mask: NDArray[np.bool_], space: ActionSpace) -> tuple[int, ...]:
    """The most probable action of each head."""
    masked = np.where(mask, logits, -np.inf)
    action = int(masked[: space.first].argmax())
    result, start = [action], space.first
    for size in space.action_nvec[1:]:
        result.append(0 if action >= space.action_nvec[0] else int(masked[start : start + size].argmax()))
        start += size
    return tuple(result)


def _pick(logits: NDArray[np.float32], mask: NDArray[np.bool_], uniform: float) -> int:
    legal = mask.nonzero()[0]
    if legal.size <= 1:
        return int(legal[0]) if legal.size else 0
    scores = logits[legal].astype(np.float64)
    edges = np.exp(scores - scores.max()).cumsum()
    index = int(edges.searchsorted(uniform * edges[-1], side="right"))
    return int(legal[min(index, legal.size - 1)])


class UniformPolicy:
    """Uniform over the masked actions of each head: the control `random`."""

    def __init__(self, space: ActionSpace) -> None:
        self.space = space
        self._logits = np.zeros(space.total, np.float32)

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        return [draw(self._logits, lane.mask, self.space, lane.rng) for lane in lanes if lane.mask is not None]


class PlanPolicy:
    """Always runs the first sub-action whose done_when is false (executor `sequence`).

    Slot i of its space is sub-action i and predicate i its done_when, so a call also ends as soon as its
    sub-action is done. With everything done it waits.
    """

    def __init__(self, space: ActionSpace) -> None:
        self.space = space
        self._count = len(space.active())
        self._rest = [0] * (len(space.action_nvec) - 1)

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        return [self._next(lane) for lane in lanes]

    def _next(self, lane: Lane) -> tuple[int, ...]:
        for index in range(self._count):
            if not lane.truths >> index & 1:
                lane.until = index
                return (self.space.action_nvec[0] + index, *self._rest)
        lane.until = -1
        return (self.space.noop, *self._rest)
