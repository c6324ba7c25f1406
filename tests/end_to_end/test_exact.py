"""`limits.exact`: the same bits on every processor that has AVX2."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rlgpt.store.limits import EXACT
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import folded, outcome
from tests.end_to_end.story import STORY, TASK

OLDER = {
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "DNNL_MAX_CPU_ISA": "AVX2",
}
"""numpy, MKL and oneDNN then take this processor for one that has AVX2 and no more."""


def test_an_exact_session_computes_with_the_instructions_that_all_have(make: Make) -> None:
    session = make(TASK, limits={"exact": True})
    told = session.trainer().environ()
    assert {name: told.get(name) for name in EXACT} == EXACT
    usual = make(TASK, limits={"exact": False}, seed=2).trainer().environ()
    assert not {name: usual[name] for name in EXACT if name in usual}

    def starts() -> list[dict[str, Any]]:
        return [row["payload"] for row in session.rows("event") if row["kind"] == "started"]

    session.until(lambda history: starts())
    assert starts()[0]["where"]["cpu"].endswith("AVX2"), "another kind of processor would be told when it goes on"


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
