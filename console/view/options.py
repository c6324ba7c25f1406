"""The option table: what each coded action was used for, how its calls ended and what they led to. Pure.

Sums of the newest PPO run up to the cursor, and of the newest development episodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlgpt.console.view.funnel import parts_of
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import count, decimal, percent
from rlgpt.console.view.text import Entry, Line, Span, columns, fit, line, width_of, wrap
from rlgpt.console.view.words import CALL_ENDS, nothing
from rlgpt.store.history import Run

PRIMITIVE = "primitive"
"""How `option_usage` names all primitives together."""
BAD = ("cap", "alarm", "error", "bad_yield", "budget", "killed", "quarantined")
"""Ends that are none of the code's own choosing."""


@dataclass(frozen=True)
class Use:
    """One option, or all primitives together."""

    name: str
    uses: int
    """Decisions."""
    env_steps: int | None
    """None where they were not recorded."""
    ends: Mapping[str, int]
    """Reason -> calls, the most frequent first."""
    done: int | None = None
    """Calls after which the done_when of its sub-action held; None where that was not recorded."""

    @property
    def mean_steps(self) -> float | None:
        return self.env_steps / self.uses if self.env_steps is not None and self.uses else None


@dataclass(frozen=True)
class Table:
    title: str
    uses: tuple[Use, ...]
    """The most used first."""

    def share(self, use: Use) -> float | None:
        """Of all env steps."""
        total = sum(u.env_steps or 0 for u in self.uses)
        return use.env_steps / total if use.env_steps is not None and total else None


def tables(m: Moment) -> list[Table]:
    """Of the newest PPO run, and of the newest development episodes."""
    return [table for table in (_of_training(m), _of_evaluation(m)) if table and table.uses]


def rows_of(m: Moment, run: Run) -> Any:
    """Which rows of the metric table are this run's at the cursor, without those that a resume superseded."""
    upto = m.metrics.upto(m.history.seq)
    seqs = m.metrics.column("seq")[:upto]
    of_run = m.metrics.column("run")[:upto] == run.run
    for after, before in run.hidden:
        of_run &= ~((seqs > after) & (seqs < before))
    return np.flatnonzero(of_run)


def _of_training(m: Moment) -> Table | None:
    if not m.history.runs:
        return None
    run = m.history.runs[max(m.history.runs)]
    rows = rows_of(m, run)
    sums: dict[str, float] = {}
    for name in m.metrics.names:
        if name.startswith(("usage:", "steps:", "ended:")):
            values = m.metrics.column(name)[rows]
            if np.isfinite(values).any():
                sums[name] = float(np.nansum(values))
    usage = _named(sums, "usage:")
    steps = _named(sums, "steps:") if any(name.startswith("steps:") for name in sums) else None
    ends: dict[str, dict[str, int]] = {}
    for name, number in _named(sums, "ended:").items():
        slot, _, reason = name.rpartition(":")
        ends.setdefault(slot, {})[reason] = number
    title = f"PPO run {run.run}, {count(run.updates)} updates"
    return Table(title, _uses(usage, steps, ends, None))


def _named(sums: Mapping[str, float], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): round(value) for name, value in sums.items() if name.startswith(prefix)}


def _of_evaluation(m: Moment) -> Table | None:
    evaluated = [(i, parts) for i in m.history.iterations if (parts := parts_of(i, "dev"))]
    if not evaluated:
        return None
    iteration, parts = evaluated[-1]
    ends: dict[str, dict[str, int]] = {}
    for part in parts:
        for slot, reasons in part.end_reasons.items():
            ends[slot] = _sum((ends.get(slot, {}), reasons))
    steps = _sum(p.option_steps for p in parts if p.option_steps) if all(p.option_steps for p in parts) else None
    done = _sum(p.option_done or {} for p in parts) if all(p.option_done is not None for p in parts) else None
    episodes = sum(p.episodes for p in parts)
    title = f"{episodes} dev episodes of iteration {iteration.number}"
    return Table(title, _uses(_sum(p.option_usage for p in parts), steps, ends, done))


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def _uses(
    usage: Mapping[str, int], steps: Mapping[str, int] | None, ends: Mapping[str, Mapping[str, int]],
    done: Mapping[str, int] | None,
) -> tuple[Use, ...]:  # fmt: skip
    all_tables = [
        Use(
            name, number, None if steps is None else steps.get(name, 0),
            dict(sorted(ends.get(name, {}).items(), key=lambda end: -end[1])),
            None if done is None else done.get(name),
        )
        for name, number in usage.items()
    ]  # fmt: skip
    return tuple(sorted(all_tables, key=lambda use: (-use.uses, use.name)))


# ---- what the pane and the command show ------------------------------------------------------------
TITLES = ("uses", "env steps", "mean", "done after")
WIDTHS = (8, 10, 6, 11)
LONGEST_NAME = 20
"""Cells. Where the columns leave less, names stand above them: cut ones look alike (`collect_wood`, `collect_coal`)."""


def entries(shown_tables: Sequence[Table], width: int, ended: bool = False) -> list[Entry]:
    if not shown_tables:
        promise = "the table comes with the first PPO update or the first development episodes."
        text = nothing("No option was used", ended, promise)
        return [Entry("note", tuple(wrap(text, width, "dim")), selectable=False)]
    out: list[Entry] = []
    for table in shown_tables:
        out.append(Entry(f"title:{table.title}", _row((table.title, "head"), TITLES, "dim", width), selectable=False))
        out += [_entry(table, use, width) for use in table.uses]
    return out


def _row(name: tuple[str, str], cells: Sequence[str], style: str, width: int) -> tuple[Line, ...]:
    """The name, and its cells beside it or, where that leaves it no room, under it."""
    room = width - sum(WIDTHS) - len(WIDTHS)
    if room >= max(LONGEST_NAME, width_of(line(name))):
        return (fit(columns([(line(name), room), *_right(cells, style)]), width),)
    shift = [(line(""), room)] if room >= LONGEST_NAME else []
    return fit(line(name), width), fit(columns([*shift, *_right(cells, style)]), width)


def _right(cells: Sequence[str], style: str) -> list[tuple[Line, int]]:
    return [
        (line((cell[:size].rjust(size), style)), size) for cell, size in zip(cells, WIDTHS, strict=True)
    ]  # fmt: skip


def _entry(table: Table, use: Use, width: int) -> Entry:
    share = table.share(use)
    cells = (
        count(use.uses),
        "–" if share is None else percent(share),
        decimal(use.mean_steps),
        "–" if use.done is None else f"{use.done}/{use.uses}",
    )
    name = "primitives" if use.name == PRIMITIVE else use.name
    lines = [*_row((f" {name}", "bold"), cells, "", width)]
    ended: list[Span] = []
    total = sum(use.ends.values())
    for reason, number in use.ends.items():
        ended += line(
            (" · " if ended else "   ends: ", "dim"),
            (f"{CALL_ENDS.get(reason, reason)} {percent(number / total)}", "warn" if reason in BAD else "dim"),
        )
    if ended:
        lines.append(fit(ended, width))
    return Entry(
        f"use:{table.title}:{use.name}", tuple(lines), search=name,
        yank=f"{name}\t" + "\t".join(cells), fields={"item": use.name},
    )  # fmt: skip


def tree(table: Table) -> dict[str, Any]:
    """One element of `rlgpt options --json`."""
    return {
        "of": table.title,
        "options": [
            {
                "name": use.name,
                "uses": use.uses,
                "env_steps": use.env_steps,
                "share": table.share(use),
                "mean_steps": use.mean_steps,
                "ends": dict(use.ends),
                "done": use.done,
            }
            for use in table.uses
        ],
    }
