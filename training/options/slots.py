"""The action space: the world's primitives and K slots for coded actions.

Coded actions extend the world's first head. A slot belongs to one (source hash, arguments) for as long as
that is offered, over warm starts too; a rewritten source, or a changed plan, takes the slot of what it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.host.api import FOLLOW_PLAN, Action, PlanItem, Programs, source_hash
from rlgpt.training.worlds.bounds import command_flaw
from rlgpt.training.worlds.protocol import NativeAction, World, WorldFailed

K = 24
"""Slots of every policy."""
FOLLOW = "follow_plan"


class ActionSpaceError(ValueError):
    """The configured action space cannot be built; the sentence is the argument."""


@dataclass(frozen=True)
class CodedAction:
    """An accepted coded action, as its admission described it."""

    name: str
    source: str
    tree_hash: str = ""
    arguments: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """Literal values by parameter."""
    uninterruptible: bool = False
    has_available: bool = False

    @property
    def source_hash(self) -> str:
        return source_hash(self.source)

    def bound(self) -> list[tuple[tuple[str, object], ...]]:
        """Every combination of argument values; one empty tuple if it takes none."""
        names = tuple(self.arguments)
        return [tuple(zip(names, values, strict=True)) for values in product(*self.arguments.values())]


@dataclass(frozen=True)
class Slot:
    """One coded action with its arguments bound, at a place in the first head."""

    key: str
    """Names its behaviour: equal syntax trees with equal arguments have equal keys."""
    name: str
    source_hash: str
    """`follow_plan`: a hash of the plan."""
    program: int
    """Index into Programs.actions, or FOLLOW_PLAN."""
    arguments: tuple[tuple[str, object], ...] = ()
    max_option_steps: int = 16
    """Env steps after which a call ends."""
    has_available: bool = False
    similar: str = ""
    """Name of the first slot it behaves like on the probed states, empty if none."""


@dataclass(frozen=True)
class ActionSpace:
    """Which actions a policy may take and what they run."""

    action_nvec: tuple[int, ...]
    """The world's."""
    noop: int
    """Primitive that a zero-step option costs."""
    primitives: NDArray[np.bool_]
    """(heads[0],): primitives of the first head that the configuration allows."""
    slots: tuple[Slot | None, ...] = (None,) * K
    programs: Programs = field(default_factory=Programs)
    uninterruptible: frozenset[str] = frozenset()
    """Hashes of sources that an interrupt does not end, the plan's included."""
    only_in_trouble: bool = False
    """Whether the plan runs wherever there was no sign of trouble (options/trouble.py)."""
    primitive_steps: int = 1
    """Env steps that a primitive is repeated for, unless an interrupt or the end of the episode comes before."""

    @cached_property
    def first(self) -> int:
        """Size of the first head, slots included."""
        return self.action_nvec[0] + len(self.slots)

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.first, *self.action_nvec[1:])

    @property
    def total(self) -> int:
        return sum(self.sizes)

    @cached_property
    def follow(self) -> int:
        """Place of follow_plan in the first head, -1 where it is none."""
        named = (index for index, slot in enumerate(self.slots) if slot is not None and slot.name == FOLLOW)
        return next((self.action_nvec[0] + index for index in named), -1)

    def active(self) -> list[int]:
        return [index for index, slot in enumerate(self.slots) if slot is not None]

    def static_mask(self) -> NDArray[np.bool_]:
        """(total,): what the configuration allows, whatever the state."""
        filled = np.array([slot is not None for slot in self.slots], np.bool_)
        rest = np.ones(sum(self.action_nvec[1:]), np.bool_)
        return np.concatenate([self.primitives, filled, rest])

    def waiting_mask(self) -> NDArray[np.bool_]:
        """(total,): the no-op alone, index 0 of every other head."""
        row = np.zeros(self.total, np.bool_)
        row[self.noop] = True
        row[np.cumsum(self.sizes)[:-1]] = True
        return row

    def require_actions(self) -> None:
        if not self.primitives.any() and not self.active():
            raise ActionSpaceError(
                "The action set is empty: the configuration allows no primitive and no accepted coded action."
            )

    def with_uninterruptible(self, hashes: frozenset[str]) -> ActionSpace:
        return replace(self, uninterruptible=hashes)

    def without_options(self) -> ActionSpace:
        return replace(self, slots=(None,) * len(self.slots))

    def without_primitives(self) -> ActionSpace:
        return replace(self, primitives=np.zeros_like(self.primitives))


def noop_of(world: World) -> int:
    """The primitive that does nothing: the one named so, else the first."""
    names = [primitive.name for primitive in world.primitives]
    return next((i for i, name in enumerate(names) if name in ("noop", "no_op", "none", "stay")), 0)


def primitive_names(world: World) -> dict[NativeAction, str]:
    """Native action -> name of the primitive that it is, with index 0 of every other head. Raises WorldFailed for what
    is no command, and could be no key either."""
    rest = [0] * (len(world.action_nvec) - 1)
    commands = [world.native_action([index, *rest]) for index in range(len(world.primitives))]
    for flaw in filter(None, (command_flaw(command, world.native_action_size) for command in commands)):
        raise WorldFailed(f"The world {world.name} cannot be played: {flaw}.")
    return {command: primitive.name for command, primitive in zip(commands, world.primitives, strict=True)}


def primitive_mask(world: World, names: Sequence[str]) -> NDArray[np.bool_]:
    primitive_names = [primitive.name for primitive in world.primitives]
    unknown = [name for name in names if name not in primitive_names]
    if unknown:
        raise ActionSpaceError(f"The world {world.name} has no primitive {unknown[0]!r}.")
    return np.array([name in names for name in primitive_names], np.bool_)


def plan_hash(plan: Sequence[PlanItem]) -> str:
    parts = [(i.done_when, i.action.source_hash, i.action.arguments, *filter(None, (i.trigger,))) for i in plan]
    return source_hash(repr(parts))


def build_slots(
    options: Sequence[CodedAction],
    plan: Sequence[PlanItem],
    *,
    max_option_steps: int,
    follow_plan: bool,
    previous: Sequence[Mapping[str, Any]] = (),
    similar: Mapping[str, str] | None = None,
) -> tuple[tuple[Slot | None, ...], tuple[Action, ...]]:
    """Slots and the program actions they index.

    `previous` is the slot table of the policy a run starts from ([{slot, key, name}]): what is still offered keeps
    its place, and what replaces an action of the same name takes that one's. Options with equal syntax trees and
    arguments are merged into the first. Raises ActionSpaceError when more than K are wanted.
    """
    slots_by_key: dict[str, Slot] = {}
    actions: list[Action] = []
    if follow_plan and plan:
        key = f"{FOLLOW}:{plan_hash(plan)}"
        slots_by_key[key] = Slot(key, FOLLOW, plan_hash(plan), FOLLOW_PLAN, max_option_steps=max_option_steps)
    for option in options:
        for arguments in option.bound():
            key = f"{option.tree_hash or option.source_hash}{_values(arguments)}"
            if key in slots_by_key:
                continue
            slots_by_key[key] = Slot(
                key, option.name + _values(arguments), option.source_hash, len(actions), arguments, max_option_steps,
                option.has_available, (similar or {}).get(key, ""),
            )  # fmt: skip
            actions.append(Action(option.source_hash, arguments))
    if len(slots_by_key) > K:
        raise ActionSpaceError(f"{len(slots_by_key)} coded actions are offered, but a policy has {K} slots.")
    slots: list[Slot | None] = [None] * K
    for entry in previous:
        slot = slots_by_key.pop(entry["key"], None)
        if slot is not None:
            slots[entry["slot"]] = slot
    replaced = {entry["name"]: entry["slot"] for entry in previous if slots[entry["slot"]] is None}
    for key, slot in list(slots_by_key.items()):
        if slot.name in replaced:
            slots[replaced[slot.name]] = slots_by_key.pop(key)
    free = iter([index for index, slot in enumerate(slots) if slot is None])
    for slot in slots_by_key.values():
        slots[next(free)] = slot
    return tuple(slots), tuple(actions)


def _values(arguments: Sequence[tuple[str, object]]) -> str:
    return f"({', '.join(str(value) for _, value in arguments)})" if arguments else ""


def shares(
    slots: Sequence[Slot | None], new: Sequence[int], option_prior: float, plan_prior: float
) -> dict[int, float]:
    """Prior probability of each newly activated slot.

    follow_plan gets `plan_prior` (if > 0), the others share `option_prior` equally, except that slots which
    behave alike share one part. Raises ActionSpaceError when the priors leave nothing for the other actions.
    """
    chosen = {index: slot for index in new if (slot := slots[index]) is not None}
    result: dict[int, float] = {}
    alone = [i for i, slot in chosen.items() if slot.name == FOLLOW and plan_prior > 0]
    for index in alone:
        result[index] = plan_prior
    groups: dict[str, list[int]] = {}
    for index, slot in chosen.items():
        if index not in result:
            groups.setdefault(slot.similar or slot.name, []).append(index)
    for members in groups.values():
        for index in members:
            result[index] = option_prior / len(groups) / len(members)
    if fsum(result.values()) >= 1.0:
        raise ActionSpaceError(
            f"option_prior {option_prior:g} and plan_prior {plan_prior:g} leave no probability for the rest."
        )
    return result
