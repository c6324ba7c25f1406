"""What is read of a file that another process writes while it is read, or that nobody should have written."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from rlgpt.store.live_calls import FILE, TAIL, LiveCall, LiveCalls, read
from rlgpt.store.progress import Progress

CALL = LiveCall("c1", "write/0.0/wood/1", "fast", "m", 1, False, 100.0)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[1]", b"null", b'{"call": 1}', b"[[]]", b"\xff\xfe", b"[" * 100_000,
        json.dumps([asdict(CALL) | {"characters": "many"}]).encode(),
        json.dumps([asdict(CALL) | {"more": 1}]).encode(),
        json.dumps([asdict(CALL) | {"content": None}]).encode(),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_file_that_cannot_be_understood_says_that_nothing_is_under_way(tmp_path: Path, body: bytes) -> None:
    (tmp_path / FILE).write_bytes(body)
    assert read(tmp_path) == ()


def test_only_the_end_of_a_long_reply_is_told_and_the_file_goes_with_the_last_call(tmp_path: Path) -> None:
    progress = Progress(tmp_path)
    live = LiveCalls(tmp_path, progress)
    live.began(CALL)
    for _ in range(3):
        live.heard("c1", "thinking \ud800" * 1000, "")
    live.heard("c1", "", "x" * 10 * TAIL + "the end")
    live.heard("nobody", "", "never asked")
    live.began(LiveCall("c2", "write/0.0/table/1", "fast", "m", 1, True, 101.0))  # writes at once
    first, second = read(tmp_path)
    assert first.content.endswith("xthe end") and len(first.content) == len(first.thought) == TAIL
    assert first.characters == 3 * 10_000 + 10 * TAIL + 7 and second.ahead
    live.ended("c1")
    live.ended("c2")
    assert not (tmp_path / FILE).exists()
    progress.close()


def test_a_worker_that_starts_forgets_what_the_one_before_was_hearing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps([asdict(CALL)]))
    assert read(tmp_path) == (CALL,)
    progress = Progress(tmp_path)
    LiveCalls(tmp_path, progress)
    assert read(tmp_path) == ()
    progress.close()
