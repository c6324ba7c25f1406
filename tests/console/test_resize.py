"""New sizes of the terminal, also on a machine that is busy at the wrong moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import textual.timer
from driving import console, screen_text, until

from rlgpt.console.panes.lines import Lines
from rlgpt.console.view.text import Entry, line


async def test_a_size_is_taken_over_though_the_machine_pauses_as_its_timer_starts(
    home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause between two looks at the clock, longer than the time the timer waits."""
    real, paused = textual.timer._time.get_time, []

    def late() -> float:
        frame = sys._getframe(1)
        if frame.f_code.co_name == "_run" and "next_timer" in frame.f_locals and frame.f_locals["_repeat"] == 0:
            paused.append(1)
            time.sleep(0.02)
        return real()

    store()
    async with console(home, "261121-010000-aa") as (app, pilot):
        monkeypatch.setattr(textual.timer._time, "get_time", late)
        for size in ((28, 7), (80, 24), (100, 30)):
            await pilot.resize_terminal(*size)
        await until(pilot, lambda: len(screen_text(app).splitlines()) == 30, seconds=5.0)
        assert paused


async def test_the_pane_that_is_looked_at_stays_whatever_the_size(home: Path, store: Callable[..., Path]) -> None:
    store()
    async with console(home, "261121-010000-aa", size=(120, 40)) as (app, pilot):
        for key, pane in (("9", "funnel"), ("E", "episodes"), ("2", "code")):
            await pilot.press(key)
            for size in ((80, 24), (200, 60), (120, 40)):
                await pilot.resize_terminal(*size)
                await until(pilot, lambda size=size: len(screen_text(app).splitlines()) == size[1])
                await until(pilot, lambda pane=pane: app.focused is not None and app.focused.id == pane)
                assert app.focused is not None and app.focused.display


async def test_new_rows_do_not_move_a_list_whose_end_was_scrolled_away(home: Path) -> None:
    """The wheel moves no cursor: that stands at the end still."""

    def entries(many: int) -> list[Entry]:
        return [Entry(str(number), (line(str(number)),)) for number in range(many)]

    async with console(home) as (app, pilot):
        pane = Lines()
        pane.follow = True
        pane.styles.height = 12
        await app.screen.mount(pane)
        pane.set_entries(entries(100))
        await until(pilot, lambda: pane.show_vertical_scrollbar and pane.scroll_y == pane.max_scroll_y > 0)
        pane.scroll_to(y=40, animate=False, force=True, immediate=True)
        pane.set_entries(entries(101))
        await pilot.pause()
        assert pane.scroll_y == 40
        pane.scroll_end(animate=False, force=True, immediate=True)
        pane.move_to(100)
        pane.set_entries(entries(102))
        pane.set_entries(entries(103))  # before the pane has scrolled to the end of the last ones
        await until(pilot, lambda: pane.current is not None and pane.current.key == "102")
        assert "102" in pane.seen()
        pane.styles.height = 8
        await until(pilot, lambda: pane.size.height == 8)
        pane.set_entries(entries(104))
        await until(pilot, lambda: "103" in pane.seen())


async def test_a_click_on_the_border_of_a_list_selects_nothing(home: Path) -> None:
    async with console(home) as (app, pilot):
        pane = Lines()
        pane.styles.height = 12
        pane.styles.border = ("round", "white")
        await app.screen.mount(pane)
        pane.set_entries([Entry(str(number), (line(str(number)),)) for number in range(100)], [line("head")])
        await until(pilot, lambda: pane.show_vertical_scrollbar and "8" in pane.seen())
        for row, key in ((5, "3"), (11, "3"), (0, "3"), (1, "3"), (10, "8"), (2, "0")):  # 1: the head
            await pilot.click(pane, offset=(3, row))
            await pilot.pause()
            assert pane.current is not None and pane.current.key == key and pane.scroll_y == 0


async def test_a_scroll_bar_that_comes_after_the_scroll_shows_its_place(home: Path) -> None:
    """A pane that is first laid out while it is scrolled to its end has its bar shown later than that."""
    entries = [Entry(str(number), (line(str(number)),)) for number in range(100)]
    async with console(home) as (app, pilot):
        pane = Lines()
        await app.screen.mount(pane)
        pane.set_entries(entries)
        await until(pilot, lambda: pane.show_vertical_scrollbar)
        pane.show_vertical_scrollbar = False
        pane.scroll_to(y=40, animate=False, force=True, immediate=True)
        pane.show_vertical_scrollbar = True
        await pilot.pause()
        assert pane.vertical_scrollbar.position == pane.scroll_y == 40
