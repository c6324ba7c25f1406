"""A plan being edited: the list of edits is the truth, the items are folded from it; undo drops the last edit.

The edits are those of the `override` command (`store/commands.py`), so what is shown is what will be sent. The
worker checks them again against the revision in force.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlgpt.store.history import Item, PlanState

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
TEXTS = ("goal", "reason", "done_when")
Edit = dict[str, Any]


class Wrong(ValueError):
    """The sentence for the operator."""


@dataclass(frozen=True)
class Draft:
    """An edited plan. `base` is the plan its author saw."""

    base: PlanState
    edits: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()
    executor: str = field(init=False)
    items: tuple[Item, ...] = field(init=False)

    def __post_init__(self) -> None:
        executor, items = apply(self.base, self.edits)
        object.__setattr__(self, "executor", executor)
        object.__setattr__(self, "items", items)

    def edited(self, edit: Edit) -> Draft:
        """With one more edit; a second `set` of the same item is folded into the first. Raises Wrong."""
        edits = [*self.edits]
        last = edits[-1] if edits else None
        renames = "rename" in edit or (last is not None and "rename" in last)
        if last and last["op"] == edit["op"] == "set" and last["name"] == edit["name"] and not renames:
            edits[-1] = {**last, **edit}
        else:
            edits.append(edit)
        return Draft(self.base, tuple(edits))

    def undo(self) -> Draft:
        return Draft(self.base, self.edits[:-1], (*self.undone, self.edits[-1])) if self.edits else self

    def redo(self) -> Draft:
        return Draft(self.base, (*self.edits, self.undone[-1]), self.undone[:-1]) if self.undone else self

    def rebased(self, newest: PlanState) -> tuple[Draft, list[str]]:
        """The same edits on top of another revision, and a sentence for each that no longer fits."""
        draft, lost = Draft(newest), []
        for edit in self.edits:
            try:
                draft = draft.edited(edit)
            except Wrong as error:
                lost.append(str(error))
        return draft, lost

    @property
    def changed(self) -> bool:
        same = tuple(replace(i, author="") for i in self.items) == tuple(replace(i, author="") for i in self.base.items)
        return not same or self.executor != self.base.executor

    def item(self, name: str) -> Item | None:
        return next((i for i in self.items if i.name == name), None)

    def index(self, name: str) -> int:
        return next(n for n, i in enumerate(self.items) if i.name == name)

    def origin(self, name: str) -> Item | None:
        """The base item that became `name`, through renames; None for an added one."""
        for edit in reversed(self.edits):
            if edit["op"] == "set" and edit.get("rename") == name:
                name = str(edit["name"])
            elif edit["op"] == "add" and edit["name"] == name:
                return None
        return self.base.item(name)


def apply(base: PlanState, edits: Sequence[Mapping[str, Any]]) -> tuple[str, tuple[Item, ...]]:
    """(executor, items). Raises Wrong for the first edit that does not fit."""
    executor, items = base.executor, list(base.items)
    for edit in edits:
        if edit["op"] == "executor":
            executor = str(edit["value"])
        elif edit["op"] == "add":
            item = _fields(
                Item(_name(items, edit["name"]), "code", "", "added by the operator", "", 100, False, "operator"), edit
            )
            items.insert(int(edit.get("position", len(items))), item)
        else:
            items = _one(items, edit)
    return executor, tuple(items)


def _one(items: list[Item], edit: Mapping[str, Any]) -> list[Item]:
    index = next((n for n, i in enumerate(items) if i.name == edit["name"]), -1)
    if index < 0:
        raise Wrong(f"the plan has no sub-action {edit['name']} any more")
    item = items[index]
    match edit["op"]:
        case "set":
            item = _fields(item, edit)
            if "rename" in edit:
                item = replace(item, name=_name([i for n, i in enumerate(items) if n != index], edit["rename"]))
            items[index] = item
        case "remove":
            if len(items) == 1:
                raise Wrong("the plan's only sub-action cannot be removed")
            del items[index]
        case "move":
            del items[index]
            items.insert(int(edit["position"]), replace(item, author="operator"))
        case "pin" | "unpin":
            items[index] = replace(item, pinned=edit["op"] == "pin", author="operator")
        case other:
            raise Wrong(f"there is no edit {other}")
    return items


def _fields(item: Item, edit: Mapping[str, Any]) -> Item:
    values = {k: edit[k] for k in ("mode", "max_steps", *TEXTS) if k in edit}
    steps = values.get("max_steps", 100)
    if not isinstance(steps, int) or not 1 <= steps <= 2000:
        raise Wrong("the env steps of a trial are a whole number from 1 to 2000")
    return replace(item, **values, author="operator")


def _name(items: Sequence[Item], name: object) -> str:
    if not isinstance(name, str) or not NAME.match(name) or keyword.iskeyword(name):
        raise Wrong(f"{name!r} is no name: lower-case letters, digits and _, at most 40, a letter first")
    if any(i.name == name for i in items):
        raise Wrong(f"the plan already has a sub-action {name}")
    return name
