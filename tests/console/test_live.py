"""What a model is saying, as the console shows it: thoughts dimmed, nothing of it unsafe, gone from the past."""

from __future__ import annotations

from dataclasses import replace

from moments import moment
from sample_sessions import whole

from rlgpt.console.sanitise import clean
from rlgpt.console.view import live, logs
from rlgpt.console.view.moment import Moment, Worker
from rlgpt.store.live_calls import LiveCall

CALL = LiveCall(
    "l7", "write/0.0/wood/1", "fast", "m", 1, True, 100.0, first=110.0, characters=400, thought="hm", content="def run"
)


def told(call: LiveCall, now: float = 120.0) -> Moment:
    found = moment(whole(ended=False))
    return replace(found, now=now, worker=Worker(True, "running", calls=(call,)))


def test_what_was_thought_is_dim_and_what_is_said_is_not() -> None:
    styles = {span.text.strip(): span.style for row in live.lines(CALL, 60) for span in row}
    assert styles["hm"] == "dim" and styles["def run"] == ""


def test_a_call_that_no_row_tells_of_yet_is_listed_with_its_speed() -> None:
    entry = next(e for e in logs.call_entries(told(CALL), 100) if e.key == "live:l7")
    first = "".join(span.text for span in entry.lines[0])
    assert "fast agent" in first and "wood" in first and "before its turn" in first and "≈10 tokens/s" in first


def test_a_cursor_in_the_past_sees_nothing_of_it() -> None:
    past = replace(told(CALL), live=False)
    assert not [entry for entry in logs.call_entries(past, 100) if entry.key.startswith("live:")]


def test_hostile_text_and_no_time_at_all_are_shown_safely() -> None:
    nasty = "\x1b[2J\u202e" + "\x00" * 50 + "x" * 5000
    for call in (
        replace(CALL, thought=nasty, content=nasty, role=nasty, step=nasty, model=nasty),
        replace(CALL, first=121.0, since=1e12),
    ):
        for width in (20, 120):
            for entry in logs.call_entries(told(call), width):
                assert all(clean(span.text, 10**9).isprintable() for row in entry.lines for span in row)
