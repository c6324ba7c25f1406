"""The panes' borders, moved by keys and dragged; zoom; one step back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from driving import console, screen_text, until
from textual.pilot import Pilot

from rlgpt.console.app import ConsoleApp
from rlgpt.console.panes.board import Board
from rlgpt.console.preferences import Preferences
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.screens.sessions import SessionsScreen

IDENT = "261121-010000-aa"


@pytest.fixture
def place(store: Callable[..., Path], home: Path) -> Path:
    store(IDENT)
    return home


def width_of(app: ConsoleApp, pane: str) -> int:
    return app.screen.query_one(f"#{pane}").outer_size.width


def drawn_width(app: ConsoleApp) -> int:
    """Of the first pane, by the border that stands on the screen."""
    line = next(line for line in screen_text(app).splitlines() if "1 Plan" in line)
    return line.index("╮") + 1


async def drag(app: ConsoleApp, pilot: Pilot[int], x: int, to: int) -> None:
    y = app.screen.query_one(Board).region.y + 5
    await pilot.mouse_down(offset=(x, y))
    for column in range(x, to, 1 if to > x else -1):
        await pilot.hover(offset=(column, y))
    await pilot.hover(offset=(to, y))
    await pilot.mouse_up(offset=(to, y))
    await pilot.pause()


async def test_a_dragged_border_is_where_it_was_dragged_to_and_keys_move_it_on(place: Path) -> None:
    async with console(place, IDENT, (120, 40)) as (app, pilot):
        before = width_of(app, "plan")
        await drag(app, pilot, before - 1, before + 14)
        await until(pilot, lambda: abs(width_of(app, "plan") - before - 15) <= 1)
        assert drawn_width(app) == width_of(app, "plan")
        dragged = width_of(app, "plan")
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: width_of(app, "plan") > dragged)
        assert drawn_width(app) == width_of(app, "plan")
        wider = width_of(app, "plan")
        await pilot.press("less_than_sign")
        await until(pilot, lambda: width_of(app, "plan") < wider)
        await pilot.press("0")
        await until(pilot, lambda: width_of(app, "plan") == before and drawn_width(app) == before)


async def test_keys_make_the_focused_pane_larger_also_the_last_of_a_column_and_of_a_row(place: Path) -> None:
    async with console(place, IDENT, (120, 40)) as (app, pilot):

        def tall(pane: str) -> int:
            return app.screen.query_one(f"#{pane}").outer_size.height

        for key, pane in (("1", "plan"), ("4", "verdicts"), ("3", "curves")):
            await pilot.press(key)
            await until(pilot, lambda pane=pane: app.focused is not None and app.focused.id == pane)
            before = tall(pane), width_of(app, pane)
            await pilot.press("plus", "greater_than_sign")
            await until(pilot, lambda pane=pane, was=before: tall(pane) > was[0] and width_of(app, pane) > was[1])
            await pilot.press("minus", "less_than_sign")
            await until(pilot, lambda pane=pane, was=before: (tall(pane), width_of(app, pane)) == was)


async def test_what_was_dragged_is_remembered_and_the_zoom_is_not(place: Path) -> None:
    async with console(place, None, (120, 40)) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
        before = width_of(app, "plan")
        await drag(app, pilot, before - 1, before + 14)
        await pilot.press("z")
        await until(pilot, lambda: width_of(app, "plan") == 120)
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(app.screen, SessionScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
        await until(pilot, lambda: before < width_of(app, "plan") < 120)
    assert Preferences.load(place).choices.widths and not Preferences.load(place).choices.zoomed


async def test_escape_undoes_the_zoom_then_the_filter_then_leaves(place: Path) -> None:
    async with console(place, None, (120, 40)) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
        await pilot.press("6", "z", "slash", *"wood", "enter")
        await until(pilot, lambda: "/wood" in screen_text(app) and width_of(app, "log") == 120)
        await pilot.press("escape")
        await until(pilot, lambda: width_of(app, "log") < 120 and "/wood" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "/wood" not in screen_text(app))
        assert isinstance(app.screen, SessionScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))


async def test_the_filter_of_the_list_is_shown_and_escape_clears_it(place: Path) -> None:
    async with console(place) as (app, pilot):
        await pilot.press("slash", *"nothing", "enter")
        await until(pilot, lambda: "/nothing  0 of 1 session" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "make_stone_pickaxe-1" in screen_text(app) and "/nothing" not in screen_text(app))
