"""The lines above the panes: what the session is and does, what its goal is, how much of its budgets is spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlgpt.console.view import ahead, live
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import count, duration, money
from rlgpt.console.view.text import Line, Span, fit, line, spread, width_of
from rlgpt.console.view.words import model_name, silence, state_of

WIDE = 100
"""Columns from which on the number of the plan is shown too."""


def title(m: Moment, width: int, read_only: bool = False) -> Line:
    """Name, task, world and model on the left; state, iteration and plan on the right."""
    h = m.history
    session = h.session
    if not session:
        return fit(line(("rlgpt", "brand"), ("  opening the session …", "dim")), width)
    settings = session.get("settings", {})
    left = [Span(str(session["name"]), "brand")]
    if session["task"].replace("_", "-") not in str(session["name"]).replace("_", "-"):
        left.append(Span(f"  {session['task']}", "bold"))
    left.append(Span(f"  {session['world']} · {model_name(settings)}", "dim"))
    word, style = state_of(m)
    what = _what(m)
    limit = settings.get("loop", {}).get("iterations")
    right = [Span("● ", style), Span(word, f"{style} bold"), Span(what, ""), *(live.under_way(m) if m.live else ())]
    if h.iteration:
        of = f"/{limit}" if limit is not None else ""
        right.append(Span(f"  iteration {h.iteration.number}{of}", ""))
    if h.revision and width >= WIDE:
        right.append(Span(f"  plan {h.revision}", "dim"))
    if read_only:
        right.append(Span(" READ-ONLY ", "badge_warn"))
    return spread(left, right, width)


def _what(m: Moment) -> str:
    h = m.history
    if h.status != "running":
        return ""
    p = h.phase
    if p.item:
        return f" {p.item}" + (f" v{p.version}" if p.version else "")
    if p.split:
        return f" {p.split} {p.variant or ''}"
    return f" again: {', '.join(p.failed)}" if p.failed else ""


def goal(m: Moment, width: int) -> Line:
    """The task's sentence, of a long task also the sub-task in work; on the right how long it still takes."""
    h = m.history
    if not h.session:
        return ()
    goal_line = line(("Goal ", "dim"), (str(h.session.get("task_info", {}).get("prompt", "")), "bold"))
    if h.task_plans and h.sub_task < len(h.task_plans[-1].sub_tasks):
        part = h.task_plans[-1].sub_tasks[h.sub_task]
        goal_line += line((f"  part {h.sub_task + 1}: {part.get('goal') or part.get('task', '')}", "dim"))
    if not _goes_on(m):
        return fit(goal_line, width)
    since = max(m.now - h.at, 0.0) if m.live else 0.0
    return spread(goal_line, line((ahead.words(ahead.left(h, since)), "dim")), width)


def _goes_on(m: Moment) -> bool:
    """Whether a worker does what is left; in the past it did."""
    return m.worker.alive or not m.live


def budgets(m: Moment, width: int) -> Line:
    """Bars of what is spent, with time left; the rate; the age of the last progress."""
    h = m.history
    if not h.session:
        return ()
    limits = limits_of(m)
    parts: list[list[Span]] = []
    wide = width >= 150
    over = h.status == "ended" and h.result in ("succeeded", "finished")
    steps, limit = float(h.spent.env_steps), limits.get("env_steps")
    parts.append(_bar("env steps", steps, limit, count(steps), count(limit) if limit is not None else "", wide, over))
    pace = rate(m)
    if limit and pace and h.status == "running" and m.phase == "Train" and _goes_on(m):
        parts[-1].append(Span(f" left {duration((limit - steps) / pace)}", "dim"))
    spent_cost = money(h.spent.cost, h.spent.unknown_price)
    parts.append(
        _bar(
            "cost",
            h.spent.cost,
            limits.get("cost"),
            "$0" if m.rules else spent_cost,
            f"${limits['cost']:g}" if limits.get("cost") is not None else "",
            wide,
            over,
        )
    )
    parts.append(
        _bar(
            "tokens",
            float(h.spent.tokens),
            limits.get("tokens"),
            count(h.spent.tokens),
            count(limits["tokens"]) if limits.get("tokens") is not None else "",
            wide,
            over,
        )
    )
    hours = limits.get("hours")
    parts.append(
        _bar(
            "time",
            h.active,
            None if hours is None else hours * 3600,
            duration(h.active),
            "" if hours is None else duration(hours * 3600),
            wide,
            over,
        )
    )
    tail: list[Span] = []
    if pace and h.status == "running" and _goes_on(m):
        tail.append(Span(f"{count(pace)} steps/s", "bold" if m.phase == "Train" else "dim"))
    tail += _beat(m)
    room = width - width_of(tail) - 1
    shown: list[Span] = []
    for part in parts:
        extra = ([Span("  ")] if shown else []) + part
        if width_of(shown) + width_of(extra) <= room:
            shown += extra
    return spread(shown, tail, width)


def limits_of(m: Moment) -> Mapping[str, Any]:
    """Budgets in force: the session's, as changed by the operator."""
    return {**m.history.session.get("settings", {}).get("budget", {}), **m.history.budgets}


def rate(m: Moment) -> float | None:
    """Env steps per second of the newest PPO update at the cursor."""
    upto = m.metrics.upto(m.history.seq)
    if not upto:
        return None
    value = float(m.metrics.column("rate")[upto - 1])
    return value if value == value else None


def _bar(name: str, value: float, limit: float | None, shown: str, of: str, wide: bool, over: bool) -> list[Span]:
    """`over`: the session has ended regularly, so what it spent is not shown as a warning."""
    if limit is None:
        return [Span(f"{name} ", "dim"), Span(shown, "bold")]
    share = min(max(value / limit, 0.0), 1.0) if limit else float(value > 0)
    cells = 8 if wide else 4
    full = round(share * cells * 8)
    style = "bar" if over or share < 0.8 else "warn" if share < 0.95 else "bad"
    bar = "█" * (full // 8) + ("▏▎▍▌▋▊▉"[full % 8 - 1] if full % 8 else "")
    return [
        Span(f"{name} ", "dim"),
        Span(bar, f"{style} track"),
        Span(" " * (cells - len(bar)), "track"),
        Span(f" {shown}", "bold"),
        Span(f"/{of}", "dim"),
    ]


def behind(m: Moment) -> str:
    return f"shared store: {max(m.now - m.worker.behind_since, 0.0):.0f} s behind"


def _beat(m: Moment) -> list[Span]:
    if not m.live or m.history.status == "ended":
        return []
    worker = m.worker
    if not worker.alive:
        return [Span("  no worker", "bad")] if m.history.status != "created" else []
    if worker.beat is None:
        return []
    late = [Span(f"  {behind(m)}", "warn")] if worker.behind_since else []
    if m.history.status != "running":  # a pause, or a person who is waited for
        return [*late, Span("  ♥", "ok")]
    age = max(m.now - worker.beat, 0.0)
    if worker.overdue > 0:
        return [*late, Span(f"  no progress for {duration(silence(m))}", "bad")]
    return [*late, Span("  ♥ ", "ok"), Span(f"{duration(age)} ago", "dim")]
