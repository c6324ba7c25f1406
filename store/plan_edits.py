"""Edits of a plan, and the plan that results from them. Pure.

Console and worker apply edits by the same function, so an editor shows what the worker will do.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rlgpt.store.history import Item, PlanState
from rlgpt.store.row_types import JsonObject

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
LONGEST_GOAL = 800
"""Characters. This and the next two hold for models (agents/contracts.py) and operators alike: what one of them wrote
must fit into the plan that the other answers with, which keeps it."""
LONGEST_FIELD = 600
"""Characters of a reason or predicate."""
MOST_ITEMS = 24
MOST_STEPS = 2000

Mode = Literal["code", "rl", "option"]
Executor = Literal["sequence", "policy"]
Text = Annotated[str, Field(max_length=LONGEST_FIELD)]
Goal = Annotated[str, Field(max_length=LONGEST_GOAL)]
Name = Annotated[str, Field(max_length=80)]
"""Of an existing sub-action. A new name is checked when it is applied (`NAME`)."""


class BadEdit(ValueError):
    """An edit that does not fit the plan; the argument is the sentence for the operator."""


class _Edit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Fields(_Edit):
    """What can be said of a sub-action; what is left out stays as it is."""

    mode: Mode | None = None
    goal: Goal | None = None
    reason: Text | None = None
    done_when: Text | None = None
    trigger: Text | None = None
    max_steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None


class SetFields(_Fields):
    op: Literal["set"] = "set"
    name: Name
    rename: Name | None = None


class AddItem(_Fields):
    op: Literal["add"] = "add"
    name: Name
    position: Annotated[int, Field(ge=0)] | None = None
    """From 0; the end if left out."""


class RemoveItem(_Edit):
    op: Literal["remove"] = "remove"
    name: Name


class MoveItem(_Edit):
    op: Literal["move"] = "move"
    name: Name
    position: Annotated[int, Field(ge=0)]


class PinItem(_Edit):
    """A pinned sub-action stays as it is, whatever the slow agent answers."""

    op: Literal["pin"] = "pin"
    name: Name


class UnpinItem(_Edit):
    op: Literal["unpin"] = "unpin"
    name: Name


class SetExecutor(_Edit):
    op: Literal["executor"] = "executor"
    value: Executor


PlanEdit = Annotated[
    SetFields | AddItem | RemoveItem | MoveItem | PinItem | UnpinItem | SetExecutor, Field(discriminator="op")
]
OPS = ("set", "add", "remove", "move", "pin", "unpin", "executor")


_EDIT: TypeAdapter[PlanEdit] = TypeAdapter(PlanEdit)


def parse_edit(fields: JsonObject) -> PlanEdit:
    """An edit from what somebody typed. Raises BadEdit with one sentence."""
    try:
        return _EDIT.validate_python(dict(fields))
    except ValidationError as error:
        raise BadEdit(first_problem(error, str(fields.get("op")))) from None


def first_problem(error: ValidationError, about: str) -> str:
    """The first thing that is wrong with a model of kind `about`, in one line."""
    first = error.errors(include_url=False, include_context=False)[0]
    # Pydantic's location names the members of a union too; a number is a place in a list.
    place = [part for part in first["loc"] if part not in (about, *OPS) and not str(part).startswith("constrained")]
    name = " ".join(f"number {part + 1}" if isinstance(part, int) else str(part) for part in place)
    if first["type"] == "extra_forbidden":
        return f"{about} takes no {name!r:.50}"
    if first["type"] == "missing":
        return f"{about} needs {name:.60}"
    shown = " ".join(f"{first['input']!r:.80}".split())
    return f"{about}: {name:.60} is wrong: {first['msg'][0].lower()}{first['msg'][1:200]}, not {shown}"


AUTHOR = "operator"
"""Author of what an edit touches."""


def apply_edits(base: PlanState, edits: Sequence[PlanEdit]) -> tuple[str, list[Item]]:
    """(executor, items) of the plan with the edits applied in order. Raises BadEdit for the first that does not fit."""
    executor, items = base.executor, list(base.items)
    for edit in edits:
        match edit:
            case SetExecutor():
                executor = edit.value
            case AddItem():
                items = _add(items, edit)
            case SetFields():
                index = _index(items, edit.name)
                if edit.goal is not None and not edit.goal.strip():
                    raise BadEdit(f"the sub-action {edit.name!r} needs a goal")
                name = edit.name if edit.rename is None else _new_name(items, edit.rename)
                items[index] = replace(items[index], name=name, author=AUTHOR, **_fields(edit))
            case RemoveItem():
                if len(items) == 1:
                    raise BadEdit("the plan's only sub-action cannot be removed")
                del items[_index(items, edit.name)]
            case MoveItem():
                item = items.pop(_index(items, edit.name))
                items.insert(_position(edit.position, len(items)), replace(item, author=AUTHOR))
            case PinItem() | UnpinItem():
                index = _index(items, edit.name)
                items[index] = replace(items[index], pinned=isinstance(edit, PinItem), author=AUTHOR)
    return executor, items


def _add(items: list[Item], edit: AddItem) -> list[Item]:
    name = _new_name(items, edit.name)
    if len(items) >= MOST_ITEMS:
        raise BadEdit(f"the plan has {len(items)} sub-actions already, and {MOST_ITEMS} are the most")
    missing = [field for field in ("mode", "goal", "done_when") if not getattr(edit, field)]
    if missing:
        raise BadEdit(f"a new sub-action needs {', '.join(missing)}")
    item = replace(Item(name, "code", "", "added by the operator", "", 100, False, AUTHOR), **_fields(edit))
    position = len(items) if edit.position is None else _position(edit.position, len(items))
    return [*items[:position], item, *items[position:]]


def _fields(edit: _Fields) -> dict[str, Any]:
    return {name: value for name in _Fields.model_fields if (value := getattr(edit, name)) is not None}


def _index(items: Sequence[Item], name: str) -> int:
    for index, item in enumerate(items):
        if item.name == name:
            return index
    raise BadEdit(f"the plan has no sub-action {name!r}; it has: {', '.join(item.name for item in items)}")


def _new_name(items: Sequence[Item], name: str) -> str:
    if not NAME.match(name) or keyword.iskeyword(name):
        raise BadEdit(f"{name!r} is no name: lower-case letters, digits and _, at most 40, a letter first")
    if any(item.name == name for item in items):
        raise BadEdit(f"the plan already has a sub-action {name!r}")
    return name


def _position(position: int, most: int) -> int:
    if position > most:
        raise BadEdit(f"the position must be a whole number from 0 to {most}")
    return position
