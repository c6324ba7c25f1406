"""Every view takes every hostile text and hands on lines that are safe to paint and never wider than the pane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hostile import CORPUS
from moments import moment
from rich.cells import cell_len
from story import Story

from rlgpt.console.charts.plot import draw
from rlgpt.console.palette import Palette
from rlgpt.console.view import (
    banner,
    code,
    compare,
    curves,
    leaderboard,
    logs,
    override,
    plan,
    revisions,
    spending,
    status,
    system,
    timeline,
    verdicts,
    waiting,
    world,
)
from rlgpt.console.view import sessions as sessions_view
from rlgpt.console.view.draft import Draft
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry, Line
from rlgpt.store import events
from rlgpt.store.catalog import Summary
from rlgpt.store.films import Frame, packed

WIDTH = 61


def poisoned(text: str) -> Story:
    """A session whose every free text is `text`."""
    s = Story(session_id=text[:40], task=text)
    s.open()
    s.rows[0][1].update(name=text, world=text)
    s.rows[0][1]["settings"]["llm"] = {"kind": "openai", "model": text}
    s.rows[0][1]["versions"] = {text[:50]: text, "nested": {text[:50]: text}}
    s.add("task_plan", revision=1, author=text, sub_tasks=[{"task": text, "goal": text, "reason": text}], reason=text)
    s.add("iteration", sub_task=0, number=0)
    for revision in (1, 2):
        s.add(
            "plan",
            sub_task=0,
            iteration=0,
            revision=revision,
            author=text,
            executor=text,
            rationale=text,
            depth=0,
            attempted={"a": {text[:30]: text}},
        )
        for position, name in enumerate(("a", text, "gone" if revision == 1 else "new")):
            s.add(
                "sub_action",
                revision=revision,
                position=position,
                name=name,
                mode="code" if position else "rl",
                goal=text + str(revision),
                reason=text,
                done_when=text,
                max_steps=10,
                pinned=True,
                author=text,
            )
        s.event(events.PlanInForce(revision) if revision == 1 else events.PlanWaiting(revision))
    s.phase(text, item=text, variant=text, failed=[text])
    for version in (1, 2):
        s.add(
            "code_version",
            sub_task=0,
            iteration=0,
            sub_action=text,
            version=version,
            attempt=version,
            author=text,
            source_hash=s.text(text * version),
            note=text,
            admitted=version == 2,
            admission={"rule": text, "line": 1, "message": text},
        )
        s.add(
            "trial",
            sub_task=0,
            iteration=0,
            revision=1,
            sub_action=text,
            version=version,
            source_hash="",
            done_when=text,
            outcome="failed",
            episodes=5,
            successes=1,
            prefixes=5,
            env_steps=10,
            error=text + " line 1",
            trials=[],
            evidence={
                "good": {
                    "before": {text[:20]: text},
                    "after": text,
                    "difference": [text],
                    "yields": [text],
                    "end": text,
                },
                "bad": text,
            },
        )
        s.add(
            "verdict",
            sub_task=0,
            iteration=0,
            revision=1,
            sub_action=text,
            version=version,
            author=text,
            success=False,
            confidence=0.5,
            cause=text,
            advice_slow=text,
            advice_fast=text,
            measured=True,
            better="",
        )
    s.call(text, text, text, text, error=text)
    s.call(text, text, text, text)
    s.log(text, text, **{"field": text, text[:20] or "empty": text})
    s.add(
        "frame",
        source=text,
        owner=1,
        episode=0,
        step=0,
        format=f"film:{text}",
        decision=text,
        body=packed([Frame(0, "", text, text.encode("utf-8", "replace"), text, text, 0.0)]),
    )
    payload = {"edits": [{"op": text, "name": text}], text[:10]: text}
    s.event(events.Command("k", text, text, 1, payload, "refused", text))
    s.event(events.Advice(agent=text, text=text, author=text))
    s.event(events.Waiting(text))
    return s


def all_lines(m: Moment) -> Iterable[Line]:
    def every(entries: Iterable[Entry]) -> Iterable[Line]:
        return [line for entry in entries for line in entry.lines]

    keys = frozenset(e.key for view in (plan, verdicts) for e in view.entries(m, WIDTH))
    keys |= {e.key for e in logs.call_entries(m, WIDTH)} | {e.key for e in logs.log_entries(m, WIDTH)}
    yield status.title(m, WIDTH)
    yield status.budgets(m, WIDTH)
    yield from banner.lines(m, WIDTH)
    yield from every(plan.entries(m, WIDTH, keys))
    yield from every(verdicts.entries(m, WIDTH, keys))
    yield from every(logs.log_entries(m, WIDTH, "debug", keys))
    yield from every(logs.call_entries(m, WIDTH, keys))
    yield from every(system.entries(m, WIDTH))
    yield from every(world.entries(m, None, WIDTH, 20))
    shown, before = code.chosen(m.history, code.Choice())
    assert shown is not None and before is not None
    yield from code.tabs(m.history, shown, WIDTH)
    yield from code.facts(m.history, shown, before, WIDTH)
    yield from code.source_lines(m.text(shown.source_hash) or "", m.text(before.source_hash), shown, WIDTH)
    yield from draw(curves.Charts(m, curves.Options()).plot(curves.CHARTS[0]), WIDTH, 12)
    yield from every(compare.table([m, m], 0, WIDTH))
    draft = Draft(next(iter(m.history.plans.values())))
    yield from every(override.entries(draft, None, WIDTH))
    yield from override.summary(m.history, draft, WIDTH)
    marks = timeline.marks(m.history)
    times = timeline.TimeMap()
    times.add(1, 0.0)
    times.add(m.history.seq, 10.0)
    playback = timeline.Playback().at(m.history.seq - 1, times)
    yield timeline.Track(marks, times, WIDTH).line(times, playback)
    yield timeline.legend(marks, times, playback, True, WIDTH)
    summary = Summary(
        "id",
        name=m.history.session["name"],
        task=m.history.session["task"],
        model=m.history.session["world"],
        tags=(m.history.session["name"],),
        fault="x",
    )
    yield from every(sessions_view.entries([summary], WIDTH, 0.0))
    yield status.goal(m, WIDTH)
    yield from every(revisions.entries(m.history, WIDTH))
    yield from spending.lines(logs.merged(m.calls), WIDTH)
    tested = replace(summary, fault="", status="waiting", waiting_for=f"your verdict on {summary.name}", alive=True)
    tested = replace(tested, test_episodes=9, settings={"seed": 1, summary.name[:30]: summary.name})
    yield from every(waiting.entries([tested], 0.0, WIDTH))
    yield from every(leaderboard.entries([tested], tested.task, WIDTH))
    yield from every(sessions_view.entries([tested], WIDTH, 0.0, sort=sessions_view.FORKS))


@pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))
def test_no_view_lets_hostile_text_through(text: str) -> None:
    palette = Palette({}, True, ansi=True)
    painted = 0
    for line in all_lines(moment(poisoned(text))):
        for segment in palette.segments(line):
            assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in segment.text)
            segment.text.encode("utf-8")
            painted += cell_len(segment.text)
    assert painted > 500


@pytest.mark.parametrize("text", ["漢字かな交じり文", "x" * 5_000, "👩‍👩‍👧‍👦" * 40, "a" + "\u0301" * 30])
def test_lines_of_the_bars_never_exceed_their_width(text: str) -> None:
    m = moment(poisoned(text))
    for line in (
        status.title(m, WIDTH),
        status.budgets(m, WIDTH),
        status.goal(m, WIDTH),
        *code.tabs(m.history, m.history.attempts[-1], WIDTH),
    ):
        assert sum(cell_len(span.text) for span in line) <= WIDTH
