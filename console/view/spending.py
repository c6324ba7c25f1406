"""What each role's model took: calls, tries, tokens, cost and latency, for the calls pane and `rlgpt calls`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rlgpt.console.view.numbers import count, duration, money
from rlgpt.console.view.text import Line, columns, line
from rlgpt.console.view.words import ROLES

Call = Mapping[str, Any]


@dataclass
class Spending:
    """Of one role with one model."""

    role: str
    model: str
    questions: int = 0
    """What was asked; a request that failed and was sent again is one question."""
    tries: int = 0
    failed: int = 0
    waiting: int = 0
    """Sent and not answered yet."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    unknown_price: bool = False
    seconds: list[float] = field(default_factory=list)
    """Of each answer."""

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None

    @property
    def longest(self) -> float | None:
        return max(self.seconds, default=None)


def by_role(calls: Sequence[Call]) -> list[Spending]:
    """`calls`: the last row of each exchange. In the order in which the roles were first asked."""
    spendings: dict[tuple[str, str], Spending] = {}
    questions: set[tuple[str, ...]] = set()
    for call in calls:
        key = (str(call["role"]), str(call["model"]))
        spending = spendings.setdefault(key, Spending(*key))
        question = (*key, str(call["step"]), str(call["request_hash"]))
        spending.questions += question not in questions
        questions.add(question)
        spending.tries += 1
        spending.failed += call["state"] == "failed"
        spending.waiting += call["state"] == "sent"
        if call["state"] == "sent":
            continue
        tokens = int(call["tokens_in"]) + int(call["tokens_out"])
        spending.tokens_in += int(call["tokens_in"])
        spending.tokens_out += int(call["tokens_out"])
        spending.cost += float(call["cost"] or 0.0)
        spending.unknown_price |= call["cost"] is None and tokens > 0
        if call["state"] == "answered":
            spending.seconds.append(float(call["seconds"]))
    return list(spendings.values())


def tree(part: Spending) -> dict[str, Any]:
    """One element of `roles` in `calls --json`."""
    return {
        "role": part.role,
        "model": part.model,
        "questions": part.questions,
        "tries": part.tries,
        "failed": part.failed,
        "waiting": part.waiting,
        "tokens_in": part.tokens_in,
        "tokens_out": part.tokens_out,
        "cost": {"usd": None if part.unknown_price else round(part.cost, 6), "known_usd": round(part.cost, 6)},
        "seconds": {"median": part.median_seconds, "longest": part.longest},
    }


TITLES = ("role", "model", "calls", "tries", "failed", "in", "out", "cost", "median", "longest")


def cells(part: Spending, free: bool = False) -> tuple[str, ...]:
    """In the order of TITLES; `free`: answered by the rule-based model, which costs nothing."""
    return (
        ROLES.get(part.role, part.role), part.model, str(part.questions), str(part.tries), str(part.failed),
        count(part.tokens_in), count(part.tokens_out), "–" if free else money(part.cost, part.unknown_price),
        duration_of(part.median_seconds), duration_of(part.longest),
    )  # fmt: skip


def duration_of(seconds: float | None) -> str:
    """Below ten seconds with a decimal."""
    return f"{seconds:.1f}s" if seconds is not None and seconds < 10 else duration(seconds)


_WIDTHS = (12, 0, 5, 5, 6, 6, 6, 8, 7, 7)
_FIRST = (0, 2, 7, 8, 3, 4, 9, 1, 5, 6)
"""Columns in the order in which they are given a place; the model takes what is left."""


def lines(calls: Sequence[Call], width: int, free: bool = False) -> list[Line]:
    """A table with a row for each role and model; nothing before the first call."""
    spendings = by_role(calls)
    if not spendings:
        return []
    rows = [cells(one, free) for one in spendings]
    model = min(max(len(row[1]) for row in rows), 24)
    widths = [model if i == 1 else wide for i, wide in enumerate(_WIDTHS)]
    fitting: list[int] = []
    spare = width
    for index in _FIRST:
        if widths[index] + 1 <= spare:
            fitting.append(index)
            spare -= widths[index] + 1
    fitting.sort()
    head = columns([(line((TITLES[i].rjust(widths[i]) if i > 1 else TITLES[i], "dim")), widths[i]) for i in fitting])
    out = [head]
    for one, row in zip(spendings, rows, strict=True):
        style = {0: "bold", 4: "bad" if one.failed else "dim"}
        out.append(columns([
            (line((row[i].rjust(widths[i]) if i > 1 else row[i], style.get(i, ""))), widths[i]) for i in fitting
        ]))  # fmt: skip
    return out
