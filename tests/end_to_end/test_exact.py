"""`limits.exact`: the same bits on every processor that has AVX2."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from typing import Any

import pytest
import torch

from rlgpt.store.limits import EXACT
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import folded, outcome
from tests.end_to_end.story import STORY, TASK

OLDER = {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2"}
"""MKL and oneDNN then take this processor for one that has AVX2 and no more. For numpy there is only the variable that
an exact session sets itself."""
COMPUTES = """
import hashlib

import numpy
import torch

numpy.show_runtime()
print(torch.backends.cpu.get_cpu_capability())
some = numpy.linspace(0.1, 20, 10_001)
rows = numpy.random.default_rng(0).standard_normal((64, 128)).astype(numpy.float32)
parts = [numpy.exp(some), numpy.log(some), numpy.log1p(some), numpy.tanh(rows), rows @ rows.T]
parts.append((torch.as_tensor(rows) @ torch.as_tensor(rows).T).numpy())
print("computed", hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


def _computed(**variables: str) -> str:
    """What `COMPUTES` prints with the variables of an exact session and these."""
    environ = os.environ | EXACT | {"MKL_VERBOSE": "1"} | variables
    command = [sys.executable, "-P", "-c", COMPUTES]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="MKL and AVX are of x86_64")
def test_the_libraries_heed_what_an_exact_session_tells_them() -> None:
    """They ignore, without a word, a name or value that they do not know."""
    printed = _computed()
    found, _, _ = printed.partition("'not_found'")
    assert "'found'" in found and "AVX512" not in found and "X86_V4" not in found
    assert "AVX512" not in printed.partition("'not_found'")[2].partition("]")[2]
    modes = set(re.findall(r"CNR:(\w+)", printed))
    assert modes == ({"COMPATIBLE"} if torch.backends.mkl.is_available() else set())
    older = {_computed(MKL_ENABLE_INSTRUCTIONS=name).rpartition("computed ")[2] for name in ("SSE4_2", "AVX2")}
    assert older == {printed.rpartition("computed ")[2]}


def test_an_exact_session_computes_with_the_instructions_that_all_have(make: Make) -> None:
    session = make(TASK, limits={"exact": True})
    told = session.trainer().environ()
    assert {name: told.get(name) for name in EXACT} == EXACT
    usual = make(TASK, limits={"exact": False}, seed=2).trainer().environ()
    assert not {name: usual[name] for name in EXACT if name in usual}

    def starts() -> list[dict[str, Any]]:
        return [row["payload"] for row in session.rows("event") if row["kind"] == "started"]

    session.until(lambda history: starts())
    assert starts()[0]["where"]["cpu"].endswith("AVX2 exact"), "another kind of processor would be told when it goes on"


def test_a_replay_says_that_another_kind_of_processor_computed_what_it_repeats(make: Make) -> None:
    first = make("collect_wood")
    assert first.finish().result == "succeeded"
    again = make("collect_wood", start=False, llm={"kind": f"replay:{first.folder.id}"})
    assert not _said_of_the_replay(again.start())
    there = make("collect_wood", start=False, llm={"kind": f"replay:{first.folder.id}"})
    there.environment["ATEN_CPU_CAPABILITY"] = "default"  # torch then takes any processor for one without AVX
    [sentence] = _said_of_the_replay(there.start())
    assert sentence.startswith("recorded on another kind of processor (") and " DEFAULT)" in sentence


def _said_of_the_replay(session: Running) -> list[str]:
    assert session.finish().result == "succeeded"
    return [row["fields"]["sentence"] for row in session.rows("log") if row["event"] == "replay"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_an_exact_session_is_the_same_on_an_older_processor(make: Make) -> None:
    def told(**limits: object) -> tuple[Running, float]:
        session = make(TASK, start=False, **STORY, limits=limits)
        began = time.monotonic()
        session.start().finish(300)
        return session, time.monotonic() - began

    usual, seconds = told()
    newer, newer_seconds = told(exact=True)
    before = dict(newer.environment)
    newer.environment.update(OLDER)  # of all sessions that are made here
    older, _ = told(exact=True)
    newer.environment.clear()
    newer.environment.update(before)
    assert newer.history().runs, "the story must train"
    assert outcome(newer.folder) == outcome(older.folder) and folded(newer.folder) == folded(older.folder)
    same = outcome(usual.folder) == outcome(newer.folder)
    print(f"\nusual {seconds:.0f} s, exact {newer_seconds:.0f} s, and the same rows: {same}")
