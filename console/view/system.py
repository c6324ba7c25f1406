"""The system pane: what the worker uses, what the store weighs, where it runs and what was enforced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import day_time, duration, size
from rlgpt.console.view.status import behind
from rlgpt.console.view.text import Entry, Line, Span, line, wrap
from rlgpt.store.limits import OFFLINE

STORAGE_LAW = 200e6
"""Bytes of store per million env steps that a session may take."""


def entries(m: Moment, width: int) -> list[Entry]:
    lines: list[Line] = []
    h, usage, sizes = m.history, m.worker.usage, m.worker.sizes
    if not m.live:
        lines.append(line(("Now, not at the cursor: use of the machine is not stored.", "dim")))
    lines += _worker(m, width)
    for label, key, limit in (
        ("CPU", "cpu", float(usage.get("cores") or 1)),
        ("memory", "memory", _number(usage, "memory_total")),
    ):
        value = _number(usage, key)
        if value is not None:
            shown = f"{value:.2f} of {limit:.0f} cores" if key == "cpu" else f"{size(value)} of {size(limit)}"
            lines.append(_gauge(label, value, limit, shown, width))
    for gpu in usage.get("gpus", ()):
        lines.append(
            _gauge(
                "GPU",
                float(gpu["load"]),
                100.0,
                f"{gpu['load']:.0f}%  {size(gpu['memory'])} of {size(gpu['memory_total'])}",
                width,
            )
        )
    if not usage.get("gpus"):
        lines.append(line(("GPU       ", "dim"), ("none in use", "dim")))
    if sizes:
        steps = max(h.spent.env_steps, 1)
        lines.append(
            _gauge(
                "disk", _number(sizes, "used") or 0.0, _number(sizes, "total"), f"{size(sizes.get('free'))} free", width
            )
        )
        per = (sizes.get("store") or 0) / steps * 1e6
        lines.append(line(("store     ", "dim"), (size(sizes.get("store")), "bold")))
        lines.append(line(("  of it   ", "dim"), (f"artifacts {size(sizes.get('artifacts'))}", "dim")))
        if m.live and h.spent.env_steps >= 10_000:
            lines.append(
                line(
                    ("          ", ""),
                    (
                        f"{size(per)} per 1M env steps (at most {size(STORAGE_LAW)})",
                        "bad" if per > STORAGE_LAW else "dim",
                    ),
                )
            )
    for death in m.deaths[-2:]:
        last_words = death.last_words or "it said nothing"
        lines += wrap(f"the worker died ({death.how}): {last_words}", width, "warn", most=3)
    rows = sum(h.counts.values())
    lines.append(
        line(("rows      ", "dim"), (f"{rows:,}", "bold"), (f"  seq {h.seq:,}  incarnation {h.incarnation}", "dim"))
    )
    for cause in h.nondeterministic[-3:]:
        lines += wrap(f"not deterministic: {cause}", width, "warn")
    if h.host_deaths:
        lines.append(line((f"action host died {sum(h.host_deaths.values())} times", "warn")))
    if h.where:
        lines += wrap(f"processor {h.where.get('cpu')} at {h.where.get('node')}", width, "dim")
    lines += _versions(h.session, width)
    return [Entry("system", tuple(lines), selectable=False)]


def _worker(m: Moment, width: int) -> list[Line]:
    worker = m.worker
    if not worker.alive:
        idle = {"ended": "the session has ended", "created": "not started yet"}.get(worker.status)
        word = idle or "no process holds the session's lock: the worker is dead"
        return wrap(f"worker    {word}", width, "dim" if idle else "bad")
    lines = [line(("worker    ", "dim"), (f"supervised by pid {worker.pid} on {worker.host}", "bold"))]
    if worker.what:
        lines.append(line(("          ", ""), (worker.what, "dim")))
    if worker.behind_since:
        offline = m.history.session["settings"].get("limits", {}).get("offline", OFFLINE)
        lines += wrap(f"{behind(m)}; the session pauses after {offline:g} min", width, "warn")
    if worker.beat is not None:
        age = duration(max(m.now - worker.beat, 0))
        lines.append(
            line(
                ("progress  ", "dim"),
                (f"{age} ago", "bad" if worker.overdue else "ok"),
            )
        )
    return lines


def _versions(session: Mapping[str, Any], width: int) -> list[Line]:
    if not session:
        return []
    lines = [line(("started   ", "dim"), day_time(session["at"]))]
    for key, value in session.get("versions", {}).items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        lines += wrap(f"{key.replace('_', ' ')}: {value}", width, "dim", most=3)
    return lines


def _gauge(label: str, value: float, limit: float | None, shown: str, width: int) -> Line:
    cells = max(min(width - 10 - len(shown) - 1, 24), 0)
    share = min(max(value / limit, 0.0), 1.0) if limit else 0.0
    full = round(share * cells)
    style = "bad" if share > 0.95 else "warn" if share > 0.8 else "bar"
    return line((f"{label:<10}", "dim"), Span("▆" * full, style), Span("▁" * (cells - full), "dim"), (f" {shown}", ""))


def _number(fields: Mapping[str, Any], key: str) -> float | None:
    value = fields.get(key)
    return float(value) if isinstance(value, int | float) else None
