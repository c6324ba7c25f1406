"""Two or more sessions side by side: a chart, facts and plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlgpt.console.charts.plot import Curve, Plot
from rlgpt.console.view.arms import arms_of, with_defaults
from rlgpt.console.view.compare_curves import ArmCurve, Chart, arm_curves, session_curves
from rlgpt.console.view.curves import CURVE_STYLES
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import count, duration, measured, money
from rlgpt.console.view.status import limits_of
from rlgpt.console.view.text import Entry, Line, Span, columns, line, wrap
from rlgpt.console.view.words import model_name, state_of
from rlgpt.store.history import History, PlanState


def plot(chart: Chart, moments: Sequence[Moment]) -> Plot:
    """One curve a session, and one for each arm of several sessions."""
    sessions = [(m.history, m.metrics) for m in moments]
    arms = arms_of([with_defaults(h.session["settings"]) for h, _ in sessions])  # also of a newer rlgpt
    pooled = [arm for arm in arm_curves(chart, sessions, arms) if arm.low is not None]
    curves = [_curve(one, one.sessions[0]) for one in session_curves(chart, sessions)]
    curves += [_curve(arm, len(moments) + place) for place, arm in enumerate(pooled)]
    end = max((float(c.x[-1]) for c in curves), default=1.0)
    return Plot(
        chart.title,
        curves,
        x_range=(0.0, end),
        y_range=None if chart.column else (0.0, 1.0),
        empty="no PPO update in these sessions",
    )


def _curve(arm: ArmCurve, place: int) -> Curve:
    return Curve(arm.name, arm.x, arm.y, CURVE_STYLES[place % len(CURVE_STYLES)], low=arm.low, high=arm.high)


LABEL, LEAST, LEAST_SCORED = 16, 24, 31
"""Cells of a row's name, and at least of a session, or of one whose result is a score: below that results lose their
episodes."""


def table(moments: Sequence[Moment], base: int, width: int) -> list[Entry]:
    """Facts in rows, sessions in columns; what differs from the base is marked. Sessions that have no room beside the
    others stand below them."""
    least = LEAST_SCORED if any(m.history.scored for m in moments) else LEAST
    fitting = max((width - LABEL) // (least + 1), 1)
    wide = max((width - LABEL) // max(min(len(moments), fitting), 1) - 1, 12)
    facts = _facts(moments)
    entries: list[Entry] = []
    for first in range(0, len(moments), fitting):
        shown = range(first, min(first + fitting, len(moments)))
        entries += [_block(moments, facts, shown, base, wide), _plans(moments, shown, base, wide)]
    return entries


def _block(
    moments: Sequence[Moment], facts: Sequence[tuple[str, list[str]]], shown: Sequence[int], base: int, wide: int
) -> Entry:
    head: list[tuple[Line, int]] = [((), LABEL)]
    for i in shown:
        name = str(moments[i].history.session["name"])
        mark = Span("■ ", CURVE_STYLES[i % len(CURVE_STYLES)])
        head.append((line(mark, (name, "bold"), (" base" if i == base else "", "dim")), wide))
    rows: list[Line] = [columns(head)]
    for title, values in facts:
        cells: list[tuple[Line, int]] = [(line((title, "dim")), LABEL)]
        cells += [(line((values[i], "warn" if values[i] != values[base] else "")), wide) for i in shown]
        rows.append(columns(cells))
    return Entry(f"facts:{shown[0]}", tuple(rows), selectable=False)


def _facts(moments: Sequence[Moment]) -> list[tuple[str, list[str]]]:
    def each(value: Callable[[Moment], object]) -> list[str]:
        return [str(value(m)) for m in moments]

    return [
        ("state", each(lambda m: state_of(m)[0])),
        ("task", each(lambda m: m.history.session["task"])),
        ("model", each(lambda m: model_name(m.history.session["settings"]))),
        ("seed", each(lambda m: m.history.session["settings"].get("seed"))),
        ("iterations", each(lambda m: len(m.history.iterations))),
        ("dev result", each(lambda m: _developed(m.history))),
        ("test result", each(lambda m: _success(m.history, "test", "full"))),
        ("code alone, dev", each(lambda m: _code_alone(m.history))),
        ("env steps", each(lambda m: f"{count(m.history.spent.env_steps)} of {count(limits_of(m).get('env_steps'))}")),
        ("active time", each(lambda m: duration(m.history.active))),
        ("calls", each(lambda m: str(m.history.spent.calls))),
        ("tokens", each(lambda m: count(m.history.spent.tokens))),
        (
            "cost",
            each(lambda m: "none (rules)" if m.rules else money(m.history.spent.cost, m.history.spent.unknown_price)),
        ),
        ("overrides", each(lambda m: str(_overrides(m.history)))),
        ("executor", each(lambda m: m.history.plan.executor if m.history.plan else "–")),
    ]


def _developed(h: History) -> str:
    """Of what acts: the policy, or its code alone."""
    best = h.outcome or h.iteration
    return measured(h.developed(best)) if best else "–"


def _success(h: History, split: str, variant: str) -> str:
    best = h.outcome or h.iteration
    return measured(h.pooled(best, split, variant)) if best else "–"


def _overrides(h: History) -> int:
    return sum((command.kind, command.state) == ("override", "applied") for command in h.commands.values())


def _code_alone(h: History) -> str:
    """Of a sequence the development episodes are those of its code: it has no policy that would play others."""
    best = h.outcome or h.iteration
    policies = {e.policy for e in best.evaluations if (e.split, e.variant) == ("dev", "full")} if best else set()
    return _success(h, "dev", "full" if policies == {"plan"} else "plan")


def _plans(moments: Sequence[Moment], shown: Sequence[int], base: int, wide: int) -> Entry:
    """The plans in force, one sub-action a row, joined by name."""
    plans = {i: moments[i].history.plan for i in (*shown, base)}
    names = list(dict.fromkeys(item.name for plan in plans.values() if plan for item in plan.items))
    key = f"plans:{shown[0]}"
    if not names:
        return Entry(key, (line(("No plan yet in any of them.", "dim")),), selectable=False)
    rows: list[Line] = [line(("Active plans", "head"))]
    for name in names:
        cells: list[tuple[Line, int]] = [(line((name, "")), LABEL)]
        cells += [(_cell(plans[i], plans[base], name), wide) for i in shown]
        rows.append(columns(cells))
    return Entry(key, tuple(rows), selectable=False)


def _cell(plan: PlanState | None, base: PlanState | None, name: str) -> Line:
    item = plan.item(name) if plan else None
    if plan is None or item is None:
        return line(("–", "dim"))
    other = base.item(name) if base else None
    differs = other is None or other.mode != item.mode or other.goal != item.goal
    badge = Span(item.mode, {"code": "curve1", "rl": "rl"}.get(item.mode, "curve4"))
    return (badge, Span(" ⚑" if item.pinned else ""), Span(f" {item.goal}", "warn" if differs else "dim"))


def unreadable(sentences: Sequence[str], width: int) -> list[Entry]:
    return [Entry(f"fault:{i}", tuple(wrap(text, width, "bad")), selectable=False) for i, text in enumerate(sentences)]
