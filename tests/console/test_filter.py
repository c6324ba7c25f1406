"""The filter line of a session's panes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from driving import console, screen_text, until
from moments import moment
from sample_sessions import whole
from story import Story

from rlgpt.console.panes.episodes import EpisodesPane
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.view import episodes, logs
from rlgpt.console.view.text import plain
from rlgpt.store.skills import Skill, keep


async def test_code_is_not_filtered_away_and_a_filter_left_with_the_mouse_is_closed(
    home: Path, store: Callable[..., Path]
) -> None:
    store()
    async with console(home, "261121-010000-aa") as (app, pilot):
        await pilot.press("2", "slash")
        assert not app.screen.query_one("#filter").has_class("-open") and "/ filter" not in screen_text(app)
        await pilot.press("6", "slash", "p", "l")
        assert app.screen.query_one("#filter").has_class("-open")
        await pilot.click("#plan", offset=(5, 3))
        await pilot.pause()
        assert not app.screen.query_one("#filter").has_class("-open")


async def test_the_filter_of_a_list_that_is_left_with_tab_or_the_mouse_is_closed(
    home: Path, store: Callable[..., Path]
) -> None:
    """It stays in force; Escape then shows all again, below a line that would still say the words."""
    store()
    keep(Skill("chop", "crafter", "chop", "Chop.", "def chop(view):\n    yield DO\n", "True", 5, 5, "s-1", 0))
    async with console(home) as (app, pilot):
        for screen, rows in ("", "#sessions"), ("K", "#skill-list"):
            await pilot.press(*screen)
            await until(pilot, lambda rows=rows: app.screen.query(rows) and app.screen.query_one(rows, Lines).entries)
            line = app.screen.query_one("#filter")
            await pilot.press("slash", *"zz", "tab")
            await until(pilot, lambda line=line: not line.has_class("-open"))
            await pilot.press("escape", "slash", *"zz")
            assert line.has_class("-open")
            await pilot.click(rows, offset=(5, 3))
            await until(pilot, lambda line=line: not line.has_class("-open"))
            assert "Nothing here has “zz”." in screen_text(app)


async def test_a_filter_finds_rows_of_the_log_that_the_pane_has_no_room_for(
    home: Path, store: Callable[..., Path]
) -> None:
    told = whole()
    told.log("info", "an early word")
    for number in range(logs.MOST + 1):
        told.log("info", f"row {number}")
    store(story=told)
    async with console(home, "261121-010000-aa") as (app, pilot):
        await pilot.press("6")
        assert "an early word" not in screen_text(app)
        await pilot.press("slash", *"early", "enter")
        assert "an early word" in screen_text(app)
        every = len(logs.log_rows(moment(told), logs.LEVEL))
        assert f"/early 1 of {every}" in screen_text(app)


def test_a_filter_finds_calls_that_the_pane_has_no_room_for() -> None:
    told = Story(llm="openai")
    told.open()
    told.call("fast", "write/0.0/dig/1", "p", "r", error="no route to host")
    for number in range(logs.MOST):
        told.call("fast", f"write/0.0/chop/{number}", "p", "r")
    found = logs.call_entries(moment(told), 80, wanted="✗ ROUTE dig")
    assert [entry.key for entry in found if entry.selectable] == ["call:c1"]
    assert f"{logs.MOST + 1:,} calls" in plain(found[0].lines[0])


def many_episodes() -> Story:
    """More that failed than the pane has room for, and some that did not."""
    told = whole()
    for index in range(episodes.MOST + 60):
        won = index % 7 == 0
        told.episode("train", 3, index, None, success=won, end="success" if won else "time", cause="")
    return told


async def test_a_filter_finds_episodes_that_the_pane_has_no_room_for(home: Path, store: Callable[..., Path]) -> None:
    told = many_episodes()
    store(story=told)
    every = episodes.episodes(moment(told))
    won = [episode for episode in every if episode.success]
    assert won and every.index(won[0]) > episodes.MOST
    async with console(home, "261121-010000-aa") as (app, pilot):
        await pilot.press("E", "slash", *"success", "enter")
        await until(pilot, lambda: f"/success {len(won)} of {len(every)}" in screen_text(app))
        pane = app.screen.query_one(EpisodesPane)
        assert [str(entry.key) for entry in pane.entries] == [f"episode:{':'.join(map(str, e.place))}" for e in won]


async def test_the_cursor_stays_on_its_episode_when_newer_ones_take_its_place(
    home: Path, store: Callable[..., Path]
) -> None:
    told = many_episodes()
    store(story=told)
    first = next(row["seq"] for table, row in told.rows if table == "episode")
    async with console(home, "261121-010000-aa") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, SessionScreen)
        screen.controller.go_to(first + 20)
        await pilot.press("E")
        pane = screen.query_one(EpisodesPane)
        await until(pilot, lambda: any(entry.key == "episode:train:3:1" for entry in pane.entries))
        pane.select("episode:train:3:1")
        screen.controller.go_to(None)
        many = len(episodes.episodes(moment(told)))
        await until(pilot, lambda: plain(pane.entries[0].lines[0]).startswith(f"{many} episodes"))
        assert pane.current is not None and pane.current.key == "episode:train:3:1"
        assert plain(pane.entries[-1].lines[0]).startswith(f"{many - episodes.MOST - 1} more are not shown")


async def test_what_is_copied_of_a_call_is_read_when_it_is_copied(
    home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Story(llm="openai")
    told.open()
    told.call("fast", "write/0.0/dig/1", "the prompt", "the reply")
    read: list[str] = []
    logs.call_entries(moment(told, text=read.append), 80)
    assert not read
    store(story=told)
    async with console(home, "261121-010000-aa") as (app, pilot):
        copied: list[str] = []
        monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
        await pilot.press("7", "G", "y")
        await until(pilot, lambda: copied == ["the reply"])
