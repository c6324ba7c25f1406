"""What the report of a session says, from the moment that the console's panes are drawn from."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from rlgpt.console.report.markup import block, frame, harmless
from rlgpt.console.view import revisions, spending
from rlgpt.console.view.code import source_lines
from rlgpt.console.view.curves import CHARTS, Charts, Options
from rlgpt.console.view.episodes import Episode, episodes
from rlgpt.console.view.funnel import Funnel, funnel
from rlgpt.console.view.logs import merged
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import count, duration, measured, money
from rlgpt.console.view.plan import describe
from rlgpt.console.view.words import ACTING, NO_CODE, PLAN_STATUS, ROLES, VARIANTS, author, model_name
from rlgpt.store.export.svg import Line as SvgLine
from rlgpt.store.export.svg import chart
from rlgpt.store.history import Attempt, History, IterationState, Measured, pool

MOST_POINTS = 400
"""Of a curve."""
WIDTH = 104
"""Cells of a line of code."""
NO_FURTHER = "no further version"
MOST_STRIPS, MOST_FRAMES = 8, 6
TEMPLATE = Path(__file__).with_name("page") / "session.html"
BETTER = {
    "code": "The code alone is better than the policy.",
    "policy": "The policy is better than the code alone.",
    "undecided": "It is not decided whether the policy or the code alone is better.",
}


def page(m: Moment) -> str:
    """The whole page, with what the session was at this moment."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, finalize=_harmless)
    environment.filters |= {"count": count, "duration": duration, "measured": measured, "author": author}
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(**template_values(m)) + "\n"


def _harmless(value: Any) -> Any:
    """Clean what the template prints, unless it is markup that was made here."""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def template_values(m: Moment) -> dict[str, Any]:
    """The fields of the template."""
    h = m.history
    best = h.outcome
    stages = funnel(m)
    return {
        "h": h,
        "session": h.session,
        "goal": str(h.session.get("task_info", {}).get("prompt", "")),
        "model": model_name(h.session["settings"]),
        "result": h.result or h.status,
        "started": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(h.started_at)),
        "cost": "none" if m.rules else money(h.spent.cost, h.spent.unknown_price),
        "best": best,
        "test": h.pooled(best, "test", "full") if best else None,
        "dev": h.developed(best) if best else None,
        "acts": ACTING[best.result.variant] if best and best.result else "",
        "revisions": revisions.revisions(h),
        "plan_status": PLAN_STATUS,
        "funnel": stages,
        "charts": list(_charts(m)),
        "evaluations": [(i.number, *stages) for i in h.iterations for stages in _evaluations(h, i)],
        "settings": json.dumps(h.session["settings"], indent=1),
        "iterations": [_iteration(h, i) for i in h.iterations],
        "versions": [_version(m, attempt) for attempt in h.attempts],
        "strips": list(_strips(m, stages)),
        "roles": [(ROLES.get(r.role, r.role), spending.cells(r, m.rules)) for r in spending.by_role(merged(m.calls))],
        "role_titles": spending.TITLES,
        "people": [
            (c.author, describe(c.kind, c.payload), c.state, c.reason) for c in h.commands.values() if c.state != "seen"
        ],
        "rules": m.rules,
    }


def _charts(m: Moment) -> Iterator[Markup]:
    """Every chart of the curves pane that has a point, as SVG."""
    charts = Charts(m, Options())
    starts = [(charts.axis.at(i.seq), f"iteration {i.number}") for i in m.history.iterations]
    for one in CHARTS:
        plot = charts.plot(one)
        lines = []
        for curve in plot.curves:
            good = np.flatnonzero(np.isfinite(curve.y))
            few = good[np.unique(np.linspace(0, len(good) - 1, min(len(good), MOST_POINTS)).astype(int))]
            points = [(float(curve.x[i]), float(curve.y[i])) for i in few] if len(good) else []
            lines.append(SvgLine(f"{curve.name} {curve.note}".strip() or plot.title, points))
        if any(line.points for line in lines):
            yield Markup(chart(plot.title, lines, "env steps", starts, share=one.bounded))


def _iteration(h: History, iteration: IterationState) -> dict[str, Any]:
    verdict = iteration.verdict
    return {
        "number": iteration.number,
        "dev": h.developed(iteration),
        "code": h.pooled(iteration, "dev", "plan"),
        "verdict": verdict,
        "better": BETTER.get(verdict.better, "") if verdict else "",
        "why": iteration.result.why if iteration.result else "",
        "best": h.outcome is iteration,
        "runs": [h.runs[number] for number in iteration.runs],
    }


def _evaluations(h: History, iteration: IterationState) -> Iterator[tuple[str, str, Measured, int]]:
    """(split, how it was played, result, dead loops) of each variant, all of the plan and policy evaluated last."""
    for split, variant in dict.fromkeys((e.split, e.variant) for e in iteration.evaluations):
        if parts := h.parts(iteration, split, variant):
            yield split, VARIANTS.get(variant, variant), pool(parts), sum(e.dead_loops for e in parts)


def _version(m: Moment, attempt: Attempt) -> dict[str, Any]:
    before = m.history.attempt(attempt.sub_action, attempt.version - 1)
    old = m.text(before.source_hash) if before else None
    trial = attempt.trial
    outcome = "not tried"
    if trial:
        outcome = f"{trial.outcome} {trial.successes}/{trial.episodes}" if trial.episodes else trial.outcome
    if attempt.admission.get("rule") == NO_CODE:
        outcome = NO_FURTHER
    refused = "" if attempt.admitted else str(attempt.admission.get("message", ""))
    return {
        "attempt": attempt,
        "outcome": outcome,
        "error": "" if outcome == NO_FURTHER else (trial.error if trial else "") or refused,
        "against": before.version if before else None,
        "source": block(source_lines(m.text(attempt.source_hash) or "", old, attempt, WIDTH)),
    }


def _strips(m: Moment, stages: Funnel) -> Iterator[dict[str, Any]]:
    """Failing episodes that can be watched: first those lost where most are, then one of each other kind."""
    worst = stages.worst.name if stages.worst else ""
    filmed = [e for e in episodes(m, failed=True) if e.film is not None]
    filmed.sort(key=lambda e: (e.lost != worst, e.place.source not in ("test", "dev")))
    seen: dict[tuple[str, str, object], int] = {}
    shown = 0
    for episode in filmed:
        kind = (episode.place.source, episode.lost, episode.version or episode.ended)
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] > (2 if episode.lost == worst else 1) or shown == MOST_STRIPS:
            continue
        shown += 1
        yield {"episode": episode, "owner": episode.owner, "frames": list(_frames(m, episode))}


def _frames(m: Moment, episode: Episode) -> Iterator[dict[str, Any]]:
    film = m.film(episode.film) if episode.film is not None else ()
    few = np.unique(np.linspace(0, len(film) - 1, min(len(film), MOST_FRAMES)).astype(int)) if film else ()
    for shown in (film[index] for index in few):
        yield {"step": shown.step, "picture": frame(m.history.frame_module, shown), "decision": shown.decision}
