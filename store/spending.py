"""What language models have cost today: the sessions of this store, and for a seat those of who placed it."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Container
from pathlib import Path

from rlgpt.store import atomic
from rlgpt.store.catalog import headings
from rlgpt.store.home import home

FILE = "spent_elsewhere.json"
"""In the home of a seat: what the other sessions of who placed it have spent."""


def spent_today(but: Container[str] = ()) -> float:
    """USD since midnight UTC, without the sessions `but`."""
    today = _today()
    known = (heading for ident, heading in headings().items() if ident not in but)
    here = sum(cost for heading in known for day, cost in heading.costs.items() if day >= today)
    return here + _elsewhere(today)


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
