"""What a session is told of the machine that runs it, for processes that know no settings. Standard library only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlgpt.store.database import connect

SLOTS = 2
OFFLINE = 10.0
"""Minutes."""
EXACT = {"OPENBLAS_CORETYPE": "Haswell", "MKL_CBWR": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
"""numpy and torch then compute with the same instructions on every processor that has AVX2. Each library chooses by the
processor else, and sums in another order: other last bits."""


def limits(folder: Path) -> Mapping[str, Any]:
    """The part `limits` of its settings; what an earlier version did not know is missing."""
    with contextlib.closing(connect(folder / "session.db")) as base:
        row = base.execute("SELECT settings FROM session").fetchone()
    return json.loads(row[0]).get("limits", {}) if row else {}


def environment(folder: Path) -> dict[str, str]:
    """Variables for a session's processes, which numpy and torch read when they are imported."""
    return dict(EXACT) if limits(folder).get("exact") else {}
