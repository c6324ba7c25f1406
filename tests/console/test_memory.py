"""A console that is left open all day: what a session took is given back when it is left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sample_sessions import long
from stored import write
from terminal import Terminal, console_words

ROOM = 60 << 20
"""Bytes by which the memory may differ from visit to visit; one visit to this session takes 25 MB."""


@pytest.mark.slow
def test_visits_to_a_long_session_do_not_add_up(home: Path) -> None:
    write("261120-010000-zz", long(10_000, 4_000), {})
    with Terminal(console_words(str(home))) as t:
        t.until("261120")
        after = []
        for _ in range(8):
            t.press("\r")
            t.until("1 Plan")
            t.until(lambda text: "rows" not in text)
            silent(t, 2.0)
            t.press("q")
            t.until(lambda text: "1 Plan" not in text)
            silent(t, 3.0)
            after.append(resident(t.pid))
    assert after[-1] < after[0] + ROOM, after


def silent(t: Terminal, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        t.read(0.1)


def resident(pid: int) -> int:
    """Bytes of memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
