"""What language models have cost today: the sessions of this store, and for a seat those of who placed it."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Container, Mapping
from pathlib import Path

from rlgpt.store import atomic
from rlgpt.store.catalog import headings
from rlgpt.store.home import home

FILE = "spent_elsewhere.json"
"""In the home of a seat: what the other sessions of who placed it have spent."""


def spent_today(but: Container[str] = ()) -> float:
    """USD since midnight UTC, without the sessions `but`. What a fork has of its parent was paid once: it counts with
    the parent, or with the fork where the parent is not here or cannot be read."""
    today = _today()
    every = headings()
    here = 0.0
    for ident, heading in every.items():
        if ident not in but:
            here += _since(today, heading.costs)
            if heading.parent in every and every[heading.parent].costs:
                here -= _since(today, heading.inherited)
    return here + _elsewhere(today)


def _since(today: str, costs: Mapping[str, float]) -> float:
    return sum(cost for day, cost in costs.items() if day >= today)


def tell_elsewhere(seat: Path, usd: float) -> None:
    """Who placed the session with this home says what its other sessions have spent today."""
    atomic.write_bytes(seat / FILE, json.dumps({"day": _today(), "usd": usd}).encode())


def _elsewhere(today: str) -> float:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads((home() / FILE).read_bytes())
        return float(stored["usd"]) if stored["day"] >= today else 0.0
    return 0.0


def _today() -> str:
    return datetime.datetime.fromtimestamp(time.time(), datetime.UTC).date().isoformat()
