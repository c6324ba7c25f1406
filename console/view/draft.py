"""A plan being edited. It stores the list of edits; the items are computed from it, and undo drops the last edit.

The edits are those of the `override` command, applied by the function that the worker applies them with
(`store/plan_edits.py`), so what is shown is what will be sent. The worker checks them again against the plan in force.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rlgpt.store.history import Item, PlanState
from rlgpt.store.plan_edits import AddItem, BadEdit, PlanEdit, SetFields, apply_edits


@dataclass(frozen=True)
class Draft:
    """An edited plan. `base` is the plan its author saw."""

    base: PlanState
    edits: tuple[PlanEdit, ...] = ()
    undone: tuple[PlanEdit, ...] = ()
    executor: str = field(init=False)
    items: tuple[Item, ...] = field(init=False)

    def __post_init__(self) -> None:
        executor, items = apply_edits(self.base, self.edits)
        object.__setattr__(self, "executor", executor)
        object.__setattr__(self, "items", tuple(items))

    def edited(self, edit: PlanEdit) -> Draft:
        """With one more edit. Raises BadEdit."""
        return Draft(self.base, (*self.edits, edit))

    def undo(self) -> Draft:
        return Draft(self.base, self.edits[:-1], (*self.undone, self.edits[-1])) if self.edits else self

    def redo(self) -> Draft:
        return Draft(self.base, (*self.edits, self.undone[-1]), self.undone[:-1]) if self.undone else self

    def with_edits(self, edits: Iterable[PlanEdit]) -> tuple[Draft, list[str]]:
        """With these edits too, and a sentence for each that does not fit."""
        draft, lost = self, []
        for edit in edits:
            try:
                draft = draft.edited(edit)
            except BadEdit as error:
                lost.append(str(error))
        return draft, lost

    def rebased(self, newest: PlanState) -> tuple[Draft, list[str]]:
        """The same edits on top of another revision, and a sentence for each that no longer fits."""
        return Draft(newest).with_edits(self.edits)

    @property
    def new_predicates(self) -> list[tuple[str, str]]:
        """(sub-action, expression) of each `done_when` and trigger that the base does not have."""
        known = {text for item in self.base.items for text in (item.done_when, item.trigger)}
        return [(i.name, text) for i in self.items for text in (i.done_when, i.trigger) if text and text not in known]

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
            if isinstance(edit, SetFields) and edit.rename == name:
                name = edit.name
            elif isinstance(edit, AddItem) and edit.name == name:
                return None
        return self.base.item(name)
