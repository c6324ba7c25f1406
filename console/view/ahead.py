"""How long the step in progress and the session still take: what the loop plans, at the pace seen so far. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from rlgpt.console.view.numbers import duration
from rlgpt.store.history import History


class Left(NamedTuple):
    """In active seconds; None where nothing is known yet."""

    step: float | None
    session: float | None
    whole: bool
    """Whether the pace of every step ahead is known; else `session` is a part of it."""


def left(h: History, since: float = 0.0) -> Left:
    """`since`: seconds that have passed since the last row."""
    if h.status != "running" or not h.phase.name:
        return Left(None, None, False)
    elapsed = max(h.active - h.phase_active, 0.0) + since
    now = _of_step(h, elapsed)
    if h.phase.ahead is None:  # written before sessions said what is ahead
        return Left(now, None, False)
    paces = {name: _pace(h, name, elapsed) for name in h.phase.ahead}
    seconds = {name: h.phase.ahead[name] * pace for name, pace in paces.items() if pace is not None}
    total = (now or 0.0) + sum(seconds.values())
    if hours := h.budgets.get("hours", h.session.get("settings", {}).get("budget", {}).get("hours")):
        total = min(total, max(hours * 3600 - h.active - since, 0.0))
    return Left(now, total, now is not None and len(seconds) == len(h.phase.ahead))


def _pace(h: History, name: str, elapsed: float) -> float | None:
    """Active seconds for one unit of a step; None if it was never done."""
    amount, seconds = h.worked.get(name, (0.0, 0.0))
    if name == h.phase.name == "Train":
        amount, seconds = amount + h.spent.env_steps - h.phase_env_steps, seconds + elapsed
    return seconds / amount if amount > 0 else None


def _of_step(h: History, elapsed: float) -> float | None:
    pace = _pace(h, h.phase.name, elapsed)
    if pace is None:
        return None
    if h.phase.name == "Train":
        running = [run for run in h.runs.values() if run.state == "running"]
        return max(running[-1].env_steps_planned - running[-1].env_steps, 0) * pace if running else None
    amount = (h.phase.episodes or 0) if h.phase.name == "Evaluate" else 1
    return max(amount * pace - elapsed, 0.0)


def words(remaining: Left) -> str:
    """`step 2m, session about 14m left`; empty where nothing is known."""
    parts = []
    if remaining.step is not None:
        parts.append(f"step {duration(remaining.step)}")
    if remaining.session is not None and (remaining.whole or remaining.session >= 1):
        parts.append(f"session {'about' if remaining.whole else 'at least'} {duration(remaining.session)}")
    return f"{', '.join(parts)} left" if parts else ""


def tree(remaining: Left) -> dict[str, Any]:
    """`left` in `show --json`."""
    return {"step_seconds": remaining.step, "session_seconds": remaining.session, "whole": remaining.whole}
