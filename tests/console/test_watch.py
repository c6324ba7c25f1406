"""Silence is measured from the progress that was seen, and a clock that jumps changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlgpt.console import watch
from rlgpt.console.watch import Watch
from rlgpt.store import progress


def test_silence_is_counted_from_the_last_progress_by_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    tick = [1_000.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: tick[0])
    seen = Watch()
    assert seen.silent({}, 0.0) is None, "no progress yet is not silence"
    assert seen.silent({"at": 50.0, "env_steps": 1}, 80.0) == 30.0, "the first look believes the file's clock"
    tick[0] += 10
    assert seen.silent({"at": 50.0, "env_steps": 1}, 9_999_999.0) == 40.0, "a jump of the wall clock counts"
    assert seen.silent({"at": 60.0, "env_steps": 2}, 0.0) == 0.0
    tick[0] += 7
    assert seen.silent({"at": 60.0, "env_steps": 2}, 0.0) == 7.0


@pytest.mark.parametrize("text", ["", "7", "[]", "{}", '{"at": "soon"}', '{"at": null}', '{"at": [1]}', "[[1, 2]]"])
def test_a_damaged_heartbeat_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / progress.NAME).write_text(text)
    assert progress.read(tmp_path) == {}
