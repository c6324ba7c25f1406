"""The plan pane: sub-tasks and sub-actions with mode, state, reason, pins, who changed what."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from rlgpt.console.view.episodes import TASK
from rlgpt.console.view.funnel import Share, played_by, shares, went_on
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import many
from rlgpt.console.view.revisions import SIGNS, ItemChange, changes, previous
from rlgpt.console.view.text import Entry, Line, Span, fit, line, plain, spread, wrap
from rlgpt.console.view.timeline import whole
from rlgpt.console.view.words import OUTCOMES, author, unplanned
from rlgpt.store.history import History, Item, PlanState, TrialState


def state_of_item(m: Moment, plan: PlanState, item: Item) -> tuple[str, str, str]:
    """(glyph, style, words) of an item's present state."""
    h = m.history
    busy = h.status == "running" and h.phase.item == item.name and plan.revision == h.revision
    if item.mode == "rl":
        runs = [r for r in h.runs.values() if r.revision == plan.revision]
        going = bool(runs) and runs[-1].state == "running"
        if going and h.status != "ended" and (m.worker.alive or not m.live):
            return ("▶", "accent", "training")
        if runs:
            return (
                "◐",
                "rl",
                {"finished": "trained", "running": "PPO cut off"}.get(runs[-1].state, f"PPO {runs[-1].state}"),
            )
        return ("○", "rl", "left to RL")
    accepted = h.accepted(plan, item)
    tried = _last_trial(h, plan, item)
    if busy:
        words = {"Code": "being coded", "Trial": "in trials", "JudgeItem": "being judged"}.get(m.phase, "in work")
        return ("▶", "accent", words)
    if accepted and accepted.trial:
        return ("✓", "ok", f"v{accepted.version} {accepted.trial.successes}/{accepted.trial.episodes}")
    if tried:
        version, trial = tried
        glyph, style = OUTCOMES.get(trial.outcome, ("?", "warn"))
        score = f" {trial.successes}/{trial.episodes}" if trial.episodes else ""
        return (glyph, style, f"v{version} {trial.outcome}{score}")
    return ("○", "dim", "not tried")


def _last_trial(h: History, plan: PlanState, item: Item) -> tuple[int, TrialState] | None:
    """(version, trial) of what was tried last of an item in the plan's iteration. The version may be older: code is
    tried again where more may come of it. Iterations are numbered anew in each sub-task."""
    here = {r for r, p in h.plans.items() if (p.sub_task, p.iteration) == (plan.sub_task, plan.iteration)}
    tried = [(a.version, t) for a in h.attempts_of(item.name) for _, t in a.trials if t.revision in here]
    return max(tried, key=lambda pair: pair[1].seq, default=None)


def mode_badge(mode: str) -> Span:
    return Span({"code": " code ", "rl": "  rl  "}.get(mode, "option"), f"badge_{mode}")


def entries(m: Moment, width: int, expanded: frozenset[str] = frozenset()) -> list[Entry]:
    """The pane's list: task plan, active plan, then a plan that waits, then commands under way."""
    h = m.history
    out: list[Entry] = _task_plan(h, width)
    plan = h.plan
    pending = h.pending_plan
    if plan is None and pending is None:
        if not out:
            rejected = f"Plan {max(h.plans)} was rejected, and no other has come." if h.plans else ""
            out.append(_note(rejected or (unplanned(h.status == "ended") if h.seq else "No rows yet."), width))
        return out + _commands(m, width)
    if plan:
        out += _revision(m, plan, previous(h, plan), width, expanded, "active", "ok")
    if pending and pending is not plan:
        word = "waits for approval" if pending.status == "waiting" else "proposed"
        out += _revision(m, pending, plan, width, expanded, word, "warn")
    return out + _commands(m, width)


def _note(text: str, width: int) -> Entry:
    return Entry("note", tuple(wrap(text, width, "dim")), selectable=False)


def _task_plan(h: History, width: int) -> list[Entry]:
    if not h.task_plans:
        return []
    newest = h.task_plans[-1]
    title = line((f"Task plan {newest.revision}", "head"), (f" · by {author(newest.author)}", "dim"))
    out = [Entry("tasks", (fit(title, width),), selectable=False)]
    for index, task in enumerate(newest.sub_tasks):
        glyph, style = ("✓", "ok") if index < h.sub_task else ("▶", "accent") if index == h.sub_task else ("○", "dim")
        lines = [line((f" {glyph} ", style), (str(task["task"]), "bold" if index == h.sub_task else ""))]
        if index == h.sub_task:
            lines += wrap(str(task.get("goal", "")), width, "dim", "   ", most=2)
        out.append(Entry(f"task:{index}", tuple(lines), search=str(task), yank=str(task["task"])))
    return out


def _revision(
    m: Moment, plan: PlanState, before: PlanState | None, width: int, expanded: frozenset[str], word: str, style: str
) -> list[Entry]:
    by_item = {change.sub_action: change for change in changes(plan, before)}
    title = line(
        (f"Plan {plan.revision}", "head"),
        (f" · {word}", style),
        (f" · by {author(plan.author)}", "dim"),
        (f" · run by {plan.executor}", "bold"),
    )
    lines: list[Line] = [fit(title, width)]
    if f"plan:{plan.revision}" in expanded or not plan.items:
        lines += wrap(plan.rationale, width, "dim", " ")
    out = [
        Entry(
            f"plan:{plan.revision}",
            tuple(lines),
            search=plan.rationale,
            yank=plan.rationale,
            seq=whole(plan),
            fields={"revision": plan.revision},
        )
    ]
    measured = shares(m.history, plan.revision)
    whole_plan = before is None or plan.status != "waiting" or f"plan:{plan.revision}" in expanded
    for position, item in enumerate(plan.items, 1):
        if not whole_plan and item.name not in by_item:
            continue
        out.append(_item(m, plan, position, item, by_item.get(item.name), measured, width, expanded))
    for name in (name for name, change in by_item.items() if change.kind == "removed"):
        removed = line(("   - ", "bad"), (name, "dim strike"), ("  removed", "dim"))
        out.append(Entry(f"gone:{plan.revision}:{name}", (removed,), search=name, selectable=False))
    if not whole_plan and before:
        same = sum(item.name not in by_item for item in plan.items)
        text = f"   {many(same, 'sub-action')} as in plan {before.revision}"
        out.append(Entry(f"same:{plan.revision}", (line((text, "dim")),), selectable=False))
    return out


def _works(plan: PlanState, item: Item, measured: Mapping[str, Share]) -> tuple[str, str]:
    """(glyph, style) of a measured sub-action: how many of the episodes that came to it went on from it. Those of a
    score need not follow one another: every episode came to each."""
    before = plan.items[: plan.items.index(item)] if TASK in measured else ()
    passed = {name: went_on(measured, name) for name in measured}
    came = min([measured[item.name].episodes, *(passed[other.name] for other in before if other.name in measured)])
    share = passed[item.name] / came if came else 0.0
    return ("✓", "ok") if share >= WORKS else ("◐", "warn") if share >= HARDLY else ("✗", "bad")


def _item(
    m: Moment,
    plan: PlanState,
    position: int,
    item: Item,
    change: ItemChange | None,
    measured: Mapping[str, Share],
    width: int,
    expanded: frozenset[str],
) -> Entry:
    glyph, style, words = state_of_item(m, plan, item)
    share = measured.get(item.name)
    if share and glyph != "▶":
        glyph, style = _works(plan, item, measured)
        number = f"{share.reached}/{share.episodes}"
        if item.mode == "rl" and played_by(m.history, plan.revision) == "plan":
            number += " without its policy"
        words = f"{words}, reached {number}" if width >= 60 else f"reached {number}" if width >= 44 else number
    sign, sign_style = SIGNS[change.kind] if change else (" ", "")
    left = [
        Span(sign, sign_style),
        Span(f"{glyph} ", style),
        Span(f"{position:>2} ", "dim"),
        mode_badge(item.mode),
        Span(" " + item.name, "bold"),
    ]
    if item.pinned:
        left.append(Span(" ⚑", "warn"))
    lines = [spread(left, [Span(words, style)], width)]
    indent = "       "
    key = f"item:{plan.revision}:{item.name}"
    if change and change.fields:
        what = ", ".join(_field(item, field.field) for field in change.fields)
        lines += wrap(f"{what} (by {change.author})", width, "warn", indent, most=2)
    if key in expanded:
        lines += wrap(item.goal, width, "", indent)
        if item.trigger:
            words = "option of the policy, tried when" if item.is_option else "guard, runs when"
            lines += wrap(f"{words} {item.trigger}", width, "code_string", indent)
        lines += wrap(f"done when {item.done_when}", width, "code_string", indent)
        lines += wrap(f"because {item.reason}", width, "dim", indent)
        lines += wrap(
            f"at most {item.max_steps} env steps a trial; last changed by {item.author}", width, "dim", indent
        )
        proposed = plan.attempted.get(item.name)
        if proposed:
            words = ", ".join(f"{k} {v}" for k, v in proposed.items())
            lines += wrap(f"the model asked for {words}; the loop kept this", width, "warn", indent)
    elif item.goal:
        lines += wrap(item.goal, width, "dim", indent, most=1)
    yank = f"{item.name} ({item.mode}): {item.goal}\ndone_when: {item.done_when}\nreason: {item.reason}"
    return Entry(
        key,
        tuple(lines),
        search=f"{item.name} {item.mode} {item.goal} {item.reason}",
        yank=yank,
        seq=whole(plan),
        fields={"item": item.name, "revision": plan.revision},
    )


def _field(item: Item, name: str) -> str:
    if name == "mode":
        return f"now {item.mode}"
    if name == "pinned":
        return "pinned" if item.pinned else "unpinned"
    return f"other {name.replace('_', ' ')}"


WORKS, HARDLY = 0.8, 0.3
"""Shares of the episodes that came to a sub-action and reached it, from which it works, or works at times."""
STATES = {"queued": "warn", "seen": "accent", "applied": "ok", "refused": "bad", "expired": "bad"}


def _commands(m: Moment, width: int) -> list[Entry]:
    """Commands under way and the last few that were answered."""
    commands = m.history.commands.values()
    answered = list(islice((c for c in reversed(commands) if c.state != "seen"), 3))[::-1]
    recent = [c for c in commands if c.state == "seen"] + answered
    shown = [(c.kind, c.state, c.reason, c.author, c.payload, c.seq, c.id) for c in recent]
    queued = [(q["kind"], "queued", "", q["author"], q["payload"], 0, q["id"]) for q in m.queued]
    if not shown and not queued:
        return []
    out = [Entry("commands", (line(("Commands", "head")),), selectable=False)]
    for kind, state, reason, who, payload, seq, ident in [*queued, *shown]:
        left = line((f" {state:<8}", STATES.get(state, "")), f" {describe(kind, payload)}")
        lines = [spread(left, line((who, "dim")), width)]
        if reason:
            lines += wrap(reason, width, "bad" if state == "refused" else "dim", "          ")
        out.append(Entry(f"command:{ident}", tuple(lines), search=plain(left), yank=reason, seq=seq))
    return out


def describe(kind: str, payload: object) -> str:
    """A command in words."""
    fields = payload if isinstance(payload, dict) else {}
    edits = fields.get("edits")
    if isinstance(edits, list) and edits:
        return "; ".join(_edit(e) for e in edits[:4] if isinstance(e, dict)) + ("…" if len(edits) > 4 else "")
    extra = [f"{k} {v}" for k, v in fields.items() if isinstance(v, str | int | float) and k not in ("source", "id")][
        :3
    ]
    words = kind.replace("_", " ")
    return f"{words}: {', '.join(extra)}" if extra else words


def _edit(edit: dict[str, object]) -> str:
    op, name = str(edit.get("op", "")), str(edit.get("name", ""))
    if op == "set":
        texts = {k: str(v) for k, v in edit.items() if k not in ("op", "name")}
        what = ", ".join(f"{k} {text if len(text) <= 40 else text[:39] + '…'}" for k, text in texts.items())
        return f"{name}: {what}"
    if op == "move":
        position = edit.get("position")
        return f"move {name} to {position + 1 if isinstance(position, int) else position}"
    if op == "executor":
        return f"executor {edit.get('value')}"
    return f"{op} {name}"
