"""What an operator writes while the session goes on elsewhere: nothing is sent too late, nothing typed is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from driving import console, screen_text, until
from moments import moment
from sample_sessions import whole
from stored import append
from story import STARTED, Story
from textual.screen import Screen
from textual.widgets import Input, Select, TextArea

from rlgpt.console.app import ConsoleApp
from rlgpt.console.panes.curves import CurvesPane
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.budget import BudgetDialog
from rlgpt.console.screens.dialogs import Advise, Confirm
from rlgpt.console.screens.edit_code import EditCodeScreen
from rlgpt.console.screens.fork import ForkDialog
from rlgpt.console.screens.help import HelpScreen
from rlgpt.console.screens.inbox import InboxScreen
from rlgpt.console.screens.item import ItemDialog
from rlgpt.console.screens.new import NewScreen
from rlgpt.console.screens.override import OverrideScreen
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.screens.sessions import SessionsScreen
from rlgpt.console.view import curves, sessions, status
from rlgpt.console.view.text import plain
from rlgpt.store import events
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.reader import Reader

LIVE = "261121-020000-bb"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sentences: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda app, sentence, *more, **other: sentences.append(sentence))
    return sentences


@pytest.fixture
def told() -> Story:
    return whole("s-2", llm="openai", ended=False, started=STARTED + 5_000)


@pytest.fixture
def live(home: Path, store: Callable[..., Path], told: Story) -> Iterator[Path]:
    store(LIVE, told)
    with Lease.acquire(home / "sessions" / LIVE):
        yield home


def end(home: Path, story: Story) -> None:
    """As its worker would."""
    known = len(story.rows)
    story.event(events.Ended(status="finished", reason="all 4 iterations are done"))
    append(home / "sessions" / LIVE, story.rows[known:], {})


def sent(home: Path) -> int:
    with Reader(SessionFolder(home / "sessions" / LIVE)) as reader:
        return len(reader.commands())


async def test_advice_to_a_session_that_has_just_ended_stays_in_its_dialog(
    live: Path, told: Story, said: list[str]
) -> None:
    async with console(live, LIVE) as (app, pilot):
        before = sent(live)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, Advise))
        app.screen.query_one(TextArea).text = "Build the table at the ore."
        end(live, told)
        await until(pilot, lambda: "the session has ended" in screen_text(app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: said[-1:] == ["not sent: the session has ended"])
        assert isinstance(app.screen, Advise) and app.screen.query_one(TextArea).text == "Build the table at the ore."
        assert sent(live) == before


async def test_code_for_a_session_that_has_just_ended_stays_in_its_editor(
    live: Path, told: Story, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EditCodeScreen, "_ask", lambda screen, admitted: admitted(screen._text))
    async with console(live, LIVE) as (app, pilot):
        before = sent(live)
        session: Screen[object] = app.screen
        assert isinstance(session, SessionScreen)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditCodeScreen))
        end(live, told)
        moment_now = session.controller
        await until(pilot, lambda: moment_now.moment is not None and moment_now.moment.history.status == "ended")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: said[-1:] == ["edit code: not sent, the session has ended"])
        assert isinstance(app.screen, EditCodeScreen) and sent(live) == before


async def test_a_number_typed_into_the_budget_dialog_is_its_new_limit(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, BudgetDialog))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "That is its limit already." in screen_text(app))
        await pilot.press(*"7654321")
        assert app.screen.query_one("#value", Input).value == "7654321"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        with Reader(SessionFolder(live / "sessions" / LIVE)) as reader:
            assert "7654321" in str(reader.commands()[-1])


async def test_the_footer_is_that_of_the_state_after_a_dialog(live: Path, told: Story) -> None:
    async with console(live, LIVE, size=(200, 60)) as (app, pilot):
        session = app.screen
        assert isinstance(session, SessionScreen) and "override" in screen_text(app).splitlines()[-1]
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, Advise))
        await until(pilot, lambda: "o override" not in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is session and "o override" in screen_text(app).splitlines()[-1])
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, Advise))
        end(live, told)
        await until(pilot, lambda: "the session has ended" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is session and "override" not in screen_text(app).splitlines()[-1])


async def test_the_open_inbox_names_a_session_that_begins_to_wait(
    home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgpt.console.screens.inbox.READ", 0.1)
    async with console(home) as (app, pilot):
        await pilot.press("I")
        await until(pilot, lambda: isinstance(app.screen, InboxScreen) and "No session waits" in screen_text(app))
        store(LIVE, whole("s-3", ended=False))
        await until(pilot, lambda: "its worker is dead: start one again" in screen_text(app))


async def test_a_form_for_a_new_session_that_was_filled_in_is_not_dropped_without_a_question(home: Path) -> None:
    async with console(home) as (app, pilot):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewScreen) and "collect_coal" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewScreen) and "collect_coal" in screen_text(app))
        app.screen.query_one("#name", Input).value = "mine"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewScreen))
        assert app.screen.query_one("#name", Input).value == "mine"


async def test_the_list_says_why_a_finished_session_is_not_resumed(
    home: Path, store: Callable[..., Path], said: list[str]
) -> None:
    store("261121-010000-aa")
    async with console(home) as (_, pilot):
        await pilot.press("R")
        await until(pilot, lambda: said and said[-1].startswith("resume: the session has "))


def test_a_dead_worker_has_no_time_left(told: Story) -> None:
    now = moment(told)
    dead = replace(now, worker=replace(now.worker, alive=False))
    assert "left" in plain(status.goal(now, 160)) and "left" not in plain(status.goal(dead, 160))
    assert "left" not in plain(status.budgets(dead, 160))


def test_the_newest_session_first_is_the_least_age_first() -> None:
    assert "age▲" in plain(sessions.header(160, "started", True))
    assert "age▼" in plain(sessions.header(160, "started", False))
    assert "▲" not in plain(sessions.header(160, sessions.FORKS, True))


def test_the_curves_show_every_trial_and_name_the_newest(told: Story) -> None:
    now = moment(told)
    first = now.history.attempts[0]
    assert first.trial is not None and len(now.history.attempts) == 7
    first.trial = replace(first.trial, seq=now.history.seq, episodes=9, successes=9)  # its version is tried again
    first.trials.append(("True", first.trial))
    plot = curves.Charts(now, curves.Options()).plot(curves.CHARTS[0])
    (drawn,) = [curve for curve in plot.curves if curve.name == "trial"]
    assert len(drawn.y) == 8 and drawn.y[-1] == 1.0 and drawn.note == "n=9"


async def test_a_mode_that_was_chosen_for_a_sub_action_is_not_dropped_without_a_question(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ItemDialog))
        app.screen.query_one("#mode", Select).value = "rl"
        await pilot.pause()
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Confirm))


async def test_the_help_offers_the_first_match_that_can_be_done(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        app.screen.query_one(CurvesPane).focus()
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        app.screen.query_one(Input).value = "fork"
        await until(pilot, lambda: app.screen.query_one(Lines).filter == "fork")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))


def waiting_first_plan() -> Story:
    story = Story(review=True)
    story.open()
    story.add("iteration", 0.0, sub_task=0, number=0)
    story.plan(0, 1, waiting=True)
    return story


async def test_the_plan_is_not_edited_between_the_first_one_that_was_rejected_and_the_next(
    home: Path, store: Callable[..., Path], said: list[str]
) -> None:
    story = waiting_first_plan()
    story.event(events.PlanRejected(revision=1, text="there is no tree", author="ada@lab"))
    story.phase("Plan", sub_task=0, iteration=0, failed=[], last_depth=False)
    store(LIVE, story)
    with Lease.acquire(home / "sessions" / LIVE):
        async with console(home, LIVE) as (app, pilot):
            await pilot.press("o")
            await until(pilot, lambda: said[-1:] == ["override: no plan is active or waits for approval yet"])
            assert isinstance(app.screen, SessionScreen)
            assert "Plan 1 was rejected" in screen_text(app) and "not planned yet" not in screen_text(app)


async def test_edits_of_a_first_plan_that_was_rejected_elsewhere_stay_in_the_editor(
    home: Path, store: Callable[..., Path], said: list[str]
) -> None:
    story = waiting_first_plan()
    place, known = store(LIVE, story), len(story.rows)
    with Lease.acquire(place):
        async with console(home, LIVE) as (app, pilot):
            await pilot.press("o")
            await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
            await pilot.press("p")
            story.event(events.PlanRejected(revision=1, text="there is no tree", author="ada@lab"))
            append(place, story.rows[known:], {})
            await until(pilot, lambda: "Plan 1 was rejected meanwhile" in screen_text(app))
            await pilot.press("ctrl+s")
            await until(pilot, lambda: said[-1:] and said[-1].startswith("not sent: Plan 1 was rejected"))
            assert isinstance(app.screen, OverrideScreen) and app.screen.draft.changed and sent(home) == 0
