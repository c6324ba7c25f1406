"""Policies that learn nothing, and how an action is drawn from masked logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

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


def probability(
    logits: NDArray[np.float32], mask: NDArray[np.bool_], space: ActionSpace, action: tuple[int, ...]
) -> float:
    """Of an action that `draw` may give."""
    result, start = 1.0, 0
    for size, index in zip(space.sizes, action, strict=True):
        legal = mask[start : start + size].nonzero()[0]
        if legal.size > 1:
            scores = logits[start + legal].astype(np.float64)
            shares = np.exp(scores - scores.max())
            result *= float(shares[legal == index].sum() / shares.sum())
        if action[0] >= space.action_nvec[0]:
            break  # the other heads are inactive under an option
        start += size
    return result


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
    """Runs the first guard whose trigger holds, else the first step whose done_when is false (executor `sequence`).

    Slot i of its space is sub-action i and predicate i its done_when, so a call also ends as soon as its sub-action is
    done, or a guard takes its place. With everything done it waits.
    """

    def __init__(self, space: ActionSpace, triggers: Mapping[int, int] = MappingProxyType({})) -> None:
        """`triggers`: guard -> its predicate."""
        self.space, self._triggers = space, triggers
        self._steps = [index for index in range(len(space.active())) if index not in triggers]
        self._neutral_tail = [0] * (len(space.action_nvec) - 1)

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        return [self._next(lane) for lane in lanes]

    def _next(self, lane: Lane) -> tuple[int, ...]:
        spent = self._spent(lane) if self._triggers else set()
        interrupting = 0
        for index, trigger in self._triggers.items():
            if index in spent:
                continue
            if lane.truths >> trigger & 1:
                return self._call(lane, index, interrupting)
            interrupting |= 1 << trigger
        for index in self._steps:
            if not lane.truths >> index & 1:
                return self._call(lane, index, interrupting)
        lane.until = 0
        return (self.space.noop, *self._neutral_tail)

    def _call(self, lane: Lane, index: int, interrupting: int) -> tuple[int, ...]:
        lane.until = 1 << index | interrupting
        return (self.space.action_nvec[0] + index, *self._neutral_tail)

    def _spent(self, lane: Lane) -> set[int]:
        """Guards that returned without an env step since their trigger came true: they must not keep the plan from
        going on."""
        if not lane.env.steps or lane.note is None:
            lane.note = set()
        spent: set[int] = lane.note
        if lane.idle and lane.end == "return" and lane.slot in self._triggers:
            spent.add(lane.slot)
        spent -= {index for index in spent if not lane.truths >> self._triggers[index] & 1}
        return spent
