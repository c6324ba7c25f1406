"""The heartbeat of a worker: it goes on whatever becomes of the machine's clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rlgpt.store import live_calls, progress
from rlgpt.store.live_calls import LiveCall, LiveCalls
from rlgpt.store.progress import Progress


def test_a_clock_that_is_set_back_does_not_stop_the_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of which nothing is heard for 90 seconds is told to hang."""
    clock, uptime = [1_000_000.0], [50.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    monkeypatch.setattr(time, "monotonic", lambda: uptime[0])
    beat = Progress(tmp_path)
    calls = LiveCalls(tmp_path, beat)
    calls.began(LiveCall("c1", "step", "fast", "m", 1, False, clock[0]))
    beat.steps(10)
    clock[0] -= 3600.0
    uptime[0] += 1.0
    beat.steps(20)
    calls.heard("c1", "", "words")
    assert progress.read(tmp_path) == {"at": clock[0], "env_steps": 30, "heard": 0, "what": ""}
    assert [call.content for call in live_calls.read(tmp_path)] == ["words"]
    beat.close()


def test_a_wait_for_a_model_is_no_sign_of_life(tmp_path: Path) -> None:
    beat = Progress(tmp_path)
    beat.phase("Plan")
    before = progress.read(tmp_path)
    beat.waits(300.0)
    after = progress.read(tmp_path)
    assert after.get("at") == before.get("at") and after.get("next_try", 0.0) > time.time() + 200
    beat.close()
