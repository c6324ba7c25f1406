"""Corrects a plan reply by the rules of the loop: pins hold, names are unique, refinement depth ends. Pure."""

from __future__ import annotations

import keyword
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlgpt.agents.contracts import PlanReply, SubActionReply
from rlgpt.store.history import Item, PlanState

FIXED = ("mode", "goal", "trigger", "done_when", "max_steps")
"""What a pin fixes."""


@dataclass
class Enforced:
    items: list[Item]
    attempted: dict[str, dict[str, Any]] = field(default_factory=dict)
    """{sub-action: {field: what the model asked for}} where the loop kept something else; `removed: True` for a
    pinned sub-action that the reply had left out."""


def enforce(
    reply: PlanReply,
    previous: PlanState | None,
    *,
    failed: Sequence[str] = (),
    last_depth: bool = False,
    author: str = "slow",
    impossible: Collection[str] = (),
) -> Enforced:
    """The items of the next revision.

    `impossible`: names that no code should have; the loop gives others. A pinned item keeps its fields and cannot be
    left out. After the last refinement (`last_depth`) a step that `failed` is left to RL unless it is pinned to code,
    and a guard or an option that failed is dropped.
    """
    before = {item.name: item for item in previous.items} if previous else {}
    out = Enforced([])
    for asked in reply.sub_actions:
        name = _unique(asked.name, [item.name for item in out.items], impossible)
        if name != asked.name:
            out.attempted.setdefault(name, {})["name"] = asked.name
        item = _item(asked, name, before.get(name), author)
        old = before.get(name)
        if old is not None and old.pinned:
            item = _pinned(item, old, out)
        elif last_depth and name in failed and item.trigger:
            out.attempted.setdefault(name, {})["dropped"] = f"{_kind(item)} that could not be coded"
            continue
        elif last_depth and name in failed and item.mode == "code":
            out.attempted.setdefault(name, {})["mode"] = "code"
            item = replace(item, mode="rl", author="loop")
        out.items.append(item)
    _restore_pins(out, previous)
    return out


def _item(asked: SubActionReply, name: str, old: Item | None, author: str) -> Item:
    mode = _mode(asked, old)
    item = Item(
        name, mode, asked.goal, asked.reason, asked.done_when, asked.max_steps, False, author, asked.trigger
    )  # fmt: skip
    if old is not None and all(getattr(old, field) == getattr(item, field) for field in FIXED):
        return replace(item, author=old.author, pinned=old.pinned)
    return item


def _mode(asked: SubActionReply, old: Item | None) -> str:
    """What has a trigger has code: of an option the policy learns when to call it, not what it does. An option without
    a trigger could not be tried, so it is a step of code."""
    if asked.trigger:
        return asked.mode if asked.mode != "rl" else "option" if old and old.is_option else "code"
    return "code" if asked.mode == "option" else asked.mode


def _kind(item: Item) -> str:
    return "an option" if item.is_option else "a guard"


def _pinned(item: Item, old: Item, out: Enforced) -> Item:
    attempted_changes = {field: getattr(item, field) for field in FIXED if getattr(item, field) != getattr(old, field)}
    if attempted_changes:
        out.attempted.setdefault(old.name, {}).update(attempted_changes)
    return replace(old, reason=item.reason if not attempted_changes else old.reason)


def _restore_pins(out: Enforced, previous: PlanState | None) -> None:
    """Put pinned items that the reply left out back behind the item they followed."""
    if previous is None:
        return
    behind = ""
    for old in previous.items:
        names = [item.name for item in out.items]
        if old.pinned and old.name not in names:
            out.items.insert(names.index(behind) + 1 if behind in names else 0, old)
            out.attempted.setdefault(old.name, {})["removed"] = True
        if old.name in [item.name for item in out.items]:
            behind = old.name


def _unique(name: str, taken: Sequence[str], impossible: Collection[str]) -> str:
    """`name`, never a Python keyword (the code is a function of that name), with a number if it is taken."""
    if keyword.iskeyword(name) or name in impossible:
        name = f"{name[:37]}_it"
    number, unique = 2, name
    while unique in taken:
        suffix = f"_{number}"
        unique, number = name[: 40 - len(suffix)] + suffix, number + 1
    return unique
