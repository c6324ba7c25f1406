"""What an operator who looks elsewhere is told, and how often."""

from __future__ import annotations

from moments import moment
from sample_sessions import whole
from story import Story

from rlgpt.console.view import banner, news
from rlgpt.console.view.moment import Worker
from rlgpt.console.view.text import plain
from rlgpt.store import events
from rlgpt.store.states import MODEL


def told(story: Story, first: int, sent: dict[str, str] | None = None, **worker: object) -> list[news.Notice]:
    """The news between row `first` and the end."""
    before, after = moment(story, first), moment(story, **worker)
    asked = sent or {}
    return news.since(news.known(before, asked), news.known(after, asked), after, asked)


def test_every_wanted_verdict_and_every_waiting_plan_rings() -> None:
    s = whole(ended=False)
    before = s.seq
    s.event(events.Waiting("your verdict on collect_wood"))
    (first,) = told(s, before)
    assert first.bell and first.sentence.endswith("waits for your verdict on collect_wood")
    before = s.seq
    s.event(events.Waiting("your verdict on place_table"))
    (second,) = told(s, before)
    assert second.bell and "place_table" in second.sentence
    before = s.seq
    s.event(events.Waiting("approval of plan revision 5"))
    assert [n.bell for n in told(s, before)] == [True]


def test_what_was_told_is_not_told_again_and_a_pause_is_no_news() -> None:
    s = whole(ended=False)
    s.event(events.Waiting("approval of plan revision 5"))
    before = s.seq
    s.log("info", "nothing new")
    assert told(s, before) == []
    before = s.seq
    s.event(events.Waiting("paused"))
    assert told(s, before) == []


def test_the_end_of_a_session_is_told_with_its_reason() -> None:
    s = whole(ended=False)
    before = s.seq
    s.event(events.Ended(status="finished", reason="all 4 iterations are done"))
    (notice,) = told(s, before)
    assert notice.bell and "finished: all 4 iterations are done" in notice.sentence


def test_what_became_of_a_command_is_told_to_the_console_that_sent_it() -> None:
    s = whole(ended=False)
    before = s.seq
    fields = {"kind": "override", "author": "ada@lab", "revision": 3, "payload": {"edits": []}}
    s.event(events.Command(id="mine", **fields, state="refused", reason="the plan is at revision 4"))
    s.event(events.Command(id="theirs", **fields, state="applied", reason=""))
    (notice,) = told(s, before, {"mine": "override"})
    assert notice == news.Notice("override: refused: the plan is at revision 4", "error", False)


def test_the_key_that_starts_a_worker_is_the_users_own() -> None:
    s, keys = whole(ended=False, llm="openai"), {"session.resume": "f9"}
    dead = moment(s, worker=Worker(alive=False))
    (notice,) = news.since(news.known(moment(s, worker=Worker(alive=True)), {}), news.known(dead, {}), dead, {}, keys)
    assert notice.sentence.endswith("is dead; f9 starts a worker again")
    s.call("fast", "write/1.4/dig/1", "p", "r", error="no route to host")
    s.event(events.Waiting(MODEL))
    waits = moment(s, worker=Worker(alive=True, next_try=s.started + s.clock + 30.0))
    assert "(f9: now)" in "".join(plain(line) for line in banner.lines(waits, 200, keys=keys))
