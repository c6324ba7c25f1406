"""The revisions of a session's plan: who wrote each, why, and how it differs from the one before. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from rlgpt.console.view.text import Entry, Line, Span, fit, line, wrap
from rlgpt.console.view.timeline import whole
from rlgpt.console.view.words import PLAN_STATUS, author, unplanned
from rlgpt.store.history import History, Item, PlanState

FIELDS = ("mode", "goal", "trigger", "done_when", "max_steps", "pinned")
"""What an item is, besides its name; the reason and the author say why it is so."""
SIGNS = {"added": ("+", "ok"), "removed": ("-", "bad"), "changed": ("~", "warn"), "moved": ("↕", "warn")}


class FieldChange(NamedTuple):
    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class ItemChange:
    sub_action: str
    kind: str
    """added | removed | changed | moved."""
    fields: tuple[FieldChange, ...] = ()
    author: str = ""
    """Who changed it last; of a removed one, who wrote the plan without it."""
    reason: str = ""


@dataclass(frozen=True)
class Revision:
    plan: PlanState
    before: PlanState | None
    """The revision of the same sub-task that was active before; None for the first."""
    changes: tuple[ItemChange, ...]

    @property
    def executor(self) -> tuple[str, str] | None:
        """(before, now) where who runs the plan has changed."""
        if self.before is None or self.before.executor == self.plan.executor:
            return None
        return self.before.executor, self.plan.executor


def revisions(h: History) -> list[Revision]:
    """Of the whole session, oldest first."""
    return [revision(h, plan) for plan in h.plans.values()]


def revision(h: History, plan: PlanState) -> Revision:
    before = previous(h, plan)
    return Revision(plan, before, tuple(changes(plan, before)))


def previous(h: History, plan: PlanState) -> PlanState | None:
    """The revision of the same sub-task that was active before `plan`."""
    active = ("superseded", "in_force")
    earlier = [p for r, p in h.plans.items() if r < plan.revision and p.status in active]
    return earlier[-1] if earlier and earlier[-1].sub_task == plan.sub_task else None


def changes(plan: PlanState, before: PlanState | None) -> list[ItemChange]:
    """What `plan` does to `before`, in the order of the plan, what it removes last; nothing for a first plan."""
    if before is None:
        return []
    moved = _moved([i.name for i in before.items], [i.name for i in plan.items])
    out: list[ItemChange] = []
    for item in plan.items:
        old = before.item(item.name)
        if old is None:
            out.append(ItemChange(item.name, "added", (), item.author, item.reason))
        elif fields := _fields(old, item):
            out.append(ItemChange(item.name, "changed", fields, item.author, item.reason))
        elif item.name in moved:
            out.append(ItemChange(item.name, "moved", (), plan.author))
    gone = (item.name for item in before.items if plan.item(item.name) is None)
    return out + [ItemChange(name, "removed", (), plan.author) for name in gone]


def _fields(old: Item, new: Item) -> tuple[FieldChange, ...]:
    both = ((name, getattr(old, name), getattr(new, name)) for name in FIELDS)
    return tuple(FieldChange(name, before, after) for name, before, after in both if before != after)


def _moved(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """Names in both plans that are outside their longest common order."""
    stayed = [name for name in after if name in before]
    was = [name for name in before if name in after]
    blocks = SequenceMatcher(None, was, stayed, autojunk=False).get_matching_blocks()
    return set(stayed) - {name for block in blocks for name in was[block.a : block.a + block.size]}


# ---- as JSON -------------------------------------------------------------------------------------
def tree(shown: Revision) -> dict[str, Any]:
    """One element of `plan --json`."""
    plan = shown.plan
    return {
        "revision": plan.revision,
        "sub_task": plan.sub_task,
        "iteration": plan.iteration,
        "author": plan.author,
        "status": plan.status,
        "executor": plan.executor,
        "reason": plan.rationale,
        "rejected_because": plan.rejection or None,
        "seq": plan.seq,
        "before": shown.before.revision if shown.before else None,
        "executor_before": shown.executor[0] if shown.executor else None,
        "changes": [
            {
                "sub_action": change.sub_action,
                "kind": change.kind,
                "author": change.author,
                "reason": change.reason or None,
                "fields": {field.field: [field.before, field.after] for field in change.fields},
            }
            for change in shown.changes
        ],
    }


# ---- as lines ------------------------------------------------------------------------------------
def entries(h: History, width: int) -> list[Entry]:
    """The list of revisions, newest first, each with its reason and its changes."""
    texts = [
        Entry(
            f"revision:{r.plan.revision}",
            (head(r.plan, width), *because(r.plan, width), *difference(r, width)),
            search=f"{r.plan.author} {r.plan.rationale} {' '.join(c.sub_action for c in r.changes)}",
            yank=r.plan.rationale,
            seq=whole(r.plan),
            fields={"revision": r.plan.revision},
        )
        for r in reversed(revisions(h))
    ]
    return texts or [Entry("note", tuple(wrap(unplanned(h.status == "ended"), width, "dim")), selectable=False)]


def head(plan: PlanState, width: int) -> Line:
    status = PLAN_STATUS.get(plan.status, plan.status)
    style = {"in_force": "ok", "waiting": "warn", "rejected": "bad"}.get(plan.status, "dim")
    return fit(
        line(
            (f"Plan {plan.revision}", "head"),
            (f" · {status}", style),
            (f" · by {author(plan.author)} · iteration {plan.iteration}", "dim"),
        ),
        width,
    )


def because(plan: PlanState, width: int, most: int = 3) -> list[Line]:
    lines = wrap(plan.rationale, width, "dim", "  ", most=most)
    if plan.rejection:
        lines += wrap(f"rejected: {plan.rejection}", width, "bad", "  ", most=most)
    return lines


def difference(shown: Revision, width: int) -> list[Line]:
    """How a revision differs from the one before, a line a change."""
    if shown.before is None:
        text = f"first plan: {', '.join(f'{i.name} ({i.mode})' for i in shown.plan.items) or 'no sub-action'}"
        return wrap(text, width, "", "  ", most=3)
    against = f"against plan {shown.before.revision}"
    out: list[Line] = []
    if shown.executor:
        out.append(line(("  ~ ", "warn"), f"run by {shown.executor[1]}", (f", was {shown.executor[0]}", "dim")))
    for change in shown.changes:
        sign, style = SIGNS[change.kind]
        by = f"  {change.kind} by {author(change.author)}" if change.author else f"  {change.kind}"
        item = shown.plan.item(change.sub_action)
        if change.kind == "added" and item:
            by += f", {item.mode}"
        out.append(fit(line((f"  {sign} ", style), (change.sub_action, "bold"), (by, "dim")), width))
        for field in change.fields:
            out += _field(field, width)
        if change.reason:
            out += wrap(f"because {change.reason}", width, "dim", "      ", most=2)
    if not out:
        return [line((f"  nothing else than in plan {shown.before.revision}", "dim"))]
    return [line((f"  {against}", "dim")), *out]


def _field(field: FieldChange, width: int) -> list[Line]:
    name = {"done_when": "done when", "max_steps": "env steps"}.get(field.field, field.field)
    if field.field == "pinned":
        return [line((f"      {'pinned' if field.after else 'no longer pinned'}", "warn"))]
    if field.field in ("mode", "max_steps"):
        return [(Span(f"      {name} ", "dim"), Span(f"{field.before}", "removed"), Span(" → ", "dim"),
                 Span(f"{field.after}", "added"))]  # fmt: skip
    return [
        *wrap(f"{name} - {field.before}", width, "removed", "      ", most=2),
        *wrap(f"{name} + {field.after}", width, "added", "      ", most=2),
    ]
