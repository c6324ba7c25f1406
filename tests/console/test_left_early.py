"""Who leaves while a screen is being made, or before its answer is there, leaves that screen and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import console, screen_text, until

from rlgpt.console import launch
from rlgpt.console.commands import children
from rlgpt.console.screens.dialogs import Advise, Confirm
from rlgpt.console.screens.doctor import DoctorScreen
from rlgpt.console.screens.fork import ForkDialog
from rlgpt.console.screens.help import HelpScreen
from rlgpt.console.screens.inbox import InboxScreen
from rlgpt.console.screens.new import NewScreen
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.screens.sessions import SessionsScreen
from rlgpt.console.screens.skills import SkillsScreen
from rlgpt.console.screens.tour import TourScreen

SCREENS = (SessionScreen, DoctorScreen, HelpScreen, InboxScreen, NewScreen, SkillsScreen, TourScreen)
TURNS = (0, 1, 2, 3, 5, 10)
"""Of the event loop between the two; the screen is made in the first."""


@pytest.mark.parametrize("how", ["the console", "the screen"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_leaving_while_a_screen_is_made_is_no_error(two_sessions: Path, screen: type, how: str) -> None:
    for turns in TURNS if screen is SessionScreen else TURNS[:2]:
        async with console(two_sessions) as (app, pilot):
            if screen is SessionScreen:
                app.open_session("261121-010000-aa")
            else:
                app.push_screen(screen(app.screen) if screen is HelpScreen else screen())
            for _ in range(turns):
                await asyncio.sleep(0)
            if how == "the console":
                app.exit(0)
            else:
                app.pop_screen()
                await pilot.pause()
        assert app.return_code == (0 if how == "the console" else None)


Answer = dict[str, Callable[[Any], None]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    """What child processes were asked and have not answered yet: {question: {"then", "failed"}}."""
    questions: dict[str, Answer] = {}

    def ask(app: Any, question: str, *_: Any, then: Any = None, failed: Any = None, **__: Any) -> None:
        questions[question] = {"then": then, "failed": failed}
        if question == "tasks":
            app.call_later(then, {"tasks": [{"id": "dig", "prompt": "Dig.", "horizon": 9}]})

    monkeypatch.setattr(launch, "ask", ask)
    monkeypatch.setattr(launch, "run", ask)
    monkeypatch.setattr(children, "start_worker", lambda folder: 1)
    return questions


@pytest.mark.parametrize("filled", ["as it was", "filled in"])
@pytest.mark.parametrize("outcome", ["then", "failed"])
async def test_a_session_that_starts_behind_the_operator_closes_nothing(
    two_sessions: Path, asked: dict[str, Answer], outcome: str, filled: str
) -> None:
    async with console(two_sessions) as (app, pilot):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewScreen) and "Dig." in screen_text(app))
        if filled == "filled in":
            app.screen.query_one("#name").value = "mine"  # type: ignore[attr-defined]
        await pilot.press("ctrl+s", "escape")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        given = {"id": "261121-030000-cc", "folder": str(two_sessions)} if outcome == "then" else "the disk is full"
        asked["create"][outcome](given)
        said = "261121-030000-cc was started" if outcome == "then" else "no session was started: the disk is full"
        await until(pilot, lambda: any(said in told.message for told in app._notifications))
        assert isinstance(app.screen, SessionsScreen) and len(app.screen_stack) == 2


@pytest.mark.parametrize("outcome", ["then", "failed"])
async def test_a_fork_that_is_made_behind_the_operator_closes_nothing(
    two_sessions: Path, asked: dict[str, Answer], outcome: str
) -> None:
    async with console(two_sessions, "261121-010000-aa") as (app, pilot):
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        await pilot.press("x", "ctrl+s", "escape")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        below = app.screen
        asked["fork"][outcome]({"id": "261121-020000-bb", "seq": 7} if outcome == "then" else "the disk is full")
        said = "forked after row 7" if outcome == "then" else "no fork of 261121-010000-aa was made: the disk is full"
        await until(pilot, lambda: any(said in told.message for told in app._notifications))
        assert app.screen is below and len(app.screen_stack) == 3


async def test_what_is_sent_takes_the_question_above_its_dialog_away(two_sessions: Path) -> None:
    async with console(two_sessions, "261121-010000-aa") as (app, pilot):
        below = app.screen
        dialog = Advise(lambda: "")
        app.push_screen(dialog)
        app.push_screen(Confirm("Leave", "What you changed was not sent.", "Drop it"))
        await pilot.pause()
        dialog.dismiss(None)
        await pilot.pause()
        assert app.screen is below
        dialog.dismiss(None)
        await pilot.pause()
        assert app.screen is below
