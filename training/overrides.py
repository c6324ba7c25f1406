"""An operator's edits applied to a plan: pure, and refused with a sentence rather than half applied."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlgpt.store.history import Item, PlanState

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
FIELDS = ("mode", "goal", "reason", "done_when", "max_steps")


class Refused(ValueError):
    """The argument is the sentence for the operator."""


def apply_edits(
    plan: PlanState, edits: Sequence[Mapping[str, Any]], author: str = "operator"
) -> tuple[str, list[Item]]:
    """(executor, items) of the next revision.

    Edits, in order: {op: set, name, field...} (any of FIELDS, and `rename`), {op: add, name, mode, goal,
    done_when, position?, ...}, {op: remove, name}, {op: move, name, position}, {op: pin | unpin, name},
    {op: executor, value}. Raises Refused.
    """
    executor, items = plan.executor, list(plan.items)
    for edit in edits:
        op = edit.get("op")
        if op == "executor":
            executor = _one_of("executor", edit.get("value"), ("sequence", "policy"))
            continue
        if op == "add":
            items = _add(items, edit, author)
            continue
        index = _index(items, edit.get("name"))
        item = items[index]
        match op:
            case "set":
                items[index] = _set(items, item, edit, author)
            case "remove":
                if len(items) == 1:
                    raise Refused("the plan's only sub-action cannot be removed")
                del items[index]
            case "move":
                del items[index]
                items.insert(_position(edit.get("position"), len(items)), replace(item, author=author))
            case "pin" | "unpin":
                items[index] = replace(item, pinned=op == "pin", author=author)
            case _:
                raise Refused(f"there is no edit called {op!r}")
    if (executor, items) == (plan.executor, plan.items):
        raise Refused("the edit changes nothing")
    return executor, items


def _index(items: list[Item], name: object) -> int:
    for index, item in enumerate(items):
        if item.name == name:
            return index
    known = ", ".join(item.name for item in items)
    raise Refused(f"the plan has no sub-action {name!r}; it has: {known}")


def _add(items: list[Item], edit: Mapping[str, Any], author: str) -> list[Item]:
    name = _new_name(items, edit.get("name"))
    missing = [field for field in ("mode", "goal", "done_when") if not edit.get(field)]
    if missing:
        raise Refused(f"a new sub-action needs {', '.join(missing)}")
    blank = Item(name, "code", "", "added by the operator", "", 100, False, author)
    item = _fields(blank, edit, author)
    position = _position(edit.get("position", len(items)), len(items))
    return [*items[:position], item, *items[position:]]


def _set(items: list[Item], item: Item, edit: Mapping[str, Any], author: str) -> Item:
    item = _fields(item, edit, author)
    if "rename" in edit:
        item = replace(item, name=_new_name(items, edit["rename"]))
    return item


def _fields(item: Item, edit: Mapping[str, Any], author: str) -> Item:
    values: dict[str, Any] = {}
    for field in FIELDS:
        if field not in edit:
            continue
        value = edit[field]
        if field == "mode":
            value = _one_of("mode", value, ("code", "rl"))
        elif field == "max_steps":
            if type(value) is not int or not 1 <= value <= 2000:
                raise Refused("max_steps is a whole number from 1 to 2000")
        elif not isinstance(value, str) or len(value) > 2000:
            raise Refused(f"{field} is a text of at most 2000 characters")
        values[field] = value
    return replace(item, **values, author=author)


def _new_name(items: list[Item], name: object) -> str:
    if not isinstance(name, str) or not NAME.match(name) or keyword.iskeyword(name):
        raise Refused(f"{name!r} is no name: lower-case letters, digits and _, at most 40, a letter first")
    if any(item.name == name for item in items):
        raise Refused(f"the plan already has a sub-action {name!r}")
    return name


def _position(value: object, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise Refused(f"the position must be a whole number from 0 to {most}")
    return value


def _one_of(what: str, value: object, choices: Sequence[str]) -> str:
    if value not in choices:
        raise Refused(f"{what} is one of {', '.join(choices)}, not {value!r}")
    return str(value)
