"""What a session is told of the machine that runs it, for processes that know no settings. Standard library only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlgpt.store.database import connect

SLOTS = 2
MOST_SLOTS = 256
OFFLINE = 10.0
"""Minutes."""
EXACT = {
    "OPENBLAS_CORETYPE": "Haswell",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
}
"""numpy and torch then compute with the same instructions on every processor that has AVX2; each chooses by the
processor else, and sums in another order: other last bits. Both ignore, without a word, what they do not know. MKL,
which torch multiplies with, takes `AVX2` on Intel's processors only; on others just AUTO, which is its own choice, and
COMPATIBLE (oneMKL Developer Guide, "Specifying Code Branches"; `MKL_VERBOSE=1` tells which was taken). numpy 2.4
renamed its features: what was AVX512F to AVX512_SKX is `X86_V4`."""


def exact(environ: Mapping[str, str]) -> bool:
    """Whether a process with these variables computes as one of an exact session does."""
    return all(environ.get(name) == value for name, value in EXACT.items())


def limits(folder: Path) -> Mapping[str, Any]:
    """The part `limits` of its settings; what an earlier version did not know is missing."""
    with contextlib.closing(connect(folder / "session.db")) as base:
        row = base.execute("SELECT settings FROM session").fetchone()
    return json.loads(row[0]).get("limits", {}) if row else {}


def environment(folder: Path) -> dict[str, str]:
    """Variables for a session's processes, which numpy and torch read when they are imported."""
    return dict(EXACT) if limits(folder).get("exact") else {}
