"""An operator who leaves in the moment in which a screen is opened leaves without an error."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from driving import console

from rlgpt.console.screens.doctor import DoctorScreen
from rlgpt.console.screens.help import HelpScreen
from rlgpt.console.screens.inbox import InboxScreen
from rlgpt.console.screens.new import NewScreen
from rlgpt.console.screens.session import SessionScreen
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
