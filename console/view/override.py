"""The override editor: the draft as structured rows beside what is in force, what waits, and the conflict if stale."""

from __future__ import annotations

from collections.abc import Mapping

from rlgpt.console.keymap import NO_KEYS, short
from rlgpt.console.view.draft import Draft
from rlgpt.console.view.numbers import many
from rlgpt.console.view.plan import STATES, describe, mode_badge
from rlgpt.console.view.revisions import FIELDS
from rlgpt.console.view.text import Entry, Line, Span, columns, line, spread, wrap
from rlgpt.console.view.words import author
from rlgpt.store.history import History, Item, PlanState


def stale(h: History, draft: Draft) -> PlanState | None:
    """The revision that came into force (or waits) since the draft was begun, None while it is fresh."""
    newest = h.pending_plan or h.plan
    return newest if newest is not None and newest.revision != draft.base.revision else None


def rejected(h: History, draft: Draft) -> str:
    """That the draft's plan was rejected elsewhere and nothing stands in its place: a worker would refuse the edits."""
    if h.pending_plan or h.plan:
        return ""
    return f"Plan {draft.base.revision} was rejected meanwhile: your edits stay here until the next plan comes."


def entries(draft: Draft, model: PlanState | None, width: int) -> list[Entry]:
    """One entry a sub-action, with its fields and what differs from the plan it was begun on and the model's."""
    out: list[Entry] = []
    kept = [origin for item in draft.items if (origin := draft.origin(item.name))]
    ordered = [old for old in draft.base.items if old in kept]  # one that was added or removed moves no other
    for position, item in enumerate(draft.items, 1):
        origin = draft.origin(item.name)
        sign, style = ("+", "ok") if origin is None else ("~", "warn") if _differs(origin, item) else (" ", "")
        moved = origin is not None and ordered.index(origin) != kept.index(origin)
        left = [
            Span(sign, f"{style} bold"),
            Span(f" {position:>2} ", "dim"),
            mode_badge(item.mode),
            Span(f" {item.name}", "bold"),
            Span(" ⚑ pinned" if item.pinned else "", "warn"),
        ]
        right = [Span("moved " if moved else "", "warn"), Span(f"{item.max_steps} steps", "dim")]
        lines: list[Line] = [spread(left, right, width)]
        guard = bool(item.trigger or (origin and origin.trigger))
        for name in ("goal", *(("trigger",) if guard else ()), "done_when", "reason"):
            lines += _field(name, item, origin, width)
        proposed = model.item(item.name) if model else None
        if proposed is not None and proposed.mode != item.mode and (origin is None or origin.mode == item.mode):
            lines.append(line(("      the model planned it as ", "dim"), (proposed.mode, "accent")))
        if origin is not None and origin.mode != item.mode:
            lines.append(
                line(("      was ", "dim"), (origin.mode, "warn"), (", will be ", "dim"), (item.mode, "warn bold"))
            )
        out.append(
            Entry(
                item.name, tuple(lines), search=f"{item.name} {item.goal}", yank=item.goal, fields={"item": item.name}
            )
        )
    origins = {o.name for i in draft.items if (o := draft.origin(i.name))}
    for old in draft.base.items:
        if old.name not in origins:
            out.append(
                Entry(
                    f"removed:{old.name}",
                    (line((" - ", "bad bold"), (f"   {old.name}", "dim strike"), ("  will be removed", "bad")),),
                    selectable=False,
                )
            )
    return out


def _field(name: str, item: Item, origin: Item | None, width: int) -> list[Line]:
    value = str(getattr(item, name))
    begins = "tried when" if item.is_option else "runs when"
    label = {"goal": "goal", "trigger": begins, "done_when": "done when", "reason": "reason"}[name]
    changed = origin is not None and getattr(origin, name) != value
    style = "warn" if changed else {"goal": "", "reason": "dim"}.get(name, "code_string")
    shown = wrap(value or "(empty)", width - 18, style, "", most=2)
    return [
        columns([(line(("" if number else f"      {label}", "dim")), 17), (spans, width - 18)])
        for number, spans in enumerate(shown)
    ]


def _differs(old: Item, new: Item) -> bool:
    return old.name != new.name or any(getattr(old, f) != getattr(new, f) for f in (*FIELDS, "reason"))


def model_plan(h: History, draft: Draft) -> PlanState | None:
    """What the model last planned for this iteration."""
    written = [p for p in h.plans.values() if p.author in ("slow", "refine") and p.iteration == draft.base.iteration]
    return written[-1] if written else None


def summary(h: History, draft: Draft, width: int, keys: Mapping[str, str] = NO_KEYS) -> list[Line]:
    """What is active, what waits, what this draft would send; the conflict when it is stale. `keys`: those of the
    user's keymap."""
    lines: list[Line] = []
    force = f"plan {h.plan.revision} by {author(h.plan.author)}" if h.plan else "none yet"
    waits = f"   waits for approval: plan {h.pending_plan.revision}" if h.pending_plan else ""
    lines.append(
        spread(
            line(("active ", "dim"), (force, "ok"), (waits, "warn")),
            line((f"executor {draft.executor}", "bold" if draft.executor == draft.base.executor else "warn bold")),
            width,
        )
    )
    if draft.edits:
        edits = [edit.model_dump(exclude_none=True) for edit in draft.edits]
        lines += wrap(
            f"{many(len(edits), 'edit')} on plan {draft.base.revision}: {describe('override', {'edits': edits})}",
            width,
            "accent",
            most=2,
        )
    else:
        lines.append(line((f"no edits yet on plan {draft.base.revision}", "dim")))
    newer = stale(h, draft)
    lines += wrap(rejected(h, draft), width, "bad bold")
    if newer is not None:
        lines += conflict(draft, newer, width, short("override.rebase", keys))
    for command in list(h.commands.values())[-3:]:
        if command.kind == "override":
            state = (f"{command.state:<8}", STATES.get(command.state, ""))
            lines.append(line(state, f" {describe(command.kind, command.payload)}"))
            if command.reason:
                lines += wrap(command.reason, width, "dim", " " * 9, most=3)
    return lines


def conflict(draft: Draft, newer: PlanState, width: int, rebase: str) -> list[Line]:
    """What happened meanwhile, and which of the edits no longer fit; the key `rebase` puts the others on top of it."""
    rebased, lost = draft.rebased(newer)
    words = f"Plan {newer.revision} by {author(newer.author)} came meanwhile: "
    words += f"a worker refuses edits of plan {draft.base.revision}."
    lines = wrap(words, width, "bad bold")
    lines += wrap(
        f"{rebase} takes over {len(rebased.edits)} of {many(len(draft.edits), 'edit')} onto plan {newer.revision}."
        if draft.edits
        else f"{rebase} shows plan {newer.revision}.",
        width,
        "warn",
    )
    for sentence in lost:
        lines += wrap(f"lost: {sentence}", width, "bad", "  ")
    return lines
