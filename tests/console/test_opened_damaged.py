"""Sessions that do not fold, that are of a newer rlgpt, or whose file is replaced while they are open."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import console, screen_text, until
from sample_sessions import whole

from rlgpt.console.app import ConsoleApp
from rlgpt.store import reader
from rlgpt.store.database import connect
from rlgpt.store.folder import DATABASE
from tests.store.copies import change


async def test_sessions_of_a_newer_rlgpt_are_compared(home: Path, store: Callable[..., Path]) -> None:
    change(store("261121-010000-aa") / DATABASE, "UPDATE session SET settings = json_set(settings, '$.brand_new', 3)")
    store("261121-020000-bb", whole("s-2"))
    async with console(home) as (app, pilot):
        await pilot.press("g", "space", "space", "c")
        await until(pilot, lambda: "test result" in screen_text(app))
        await pilot.press("right")
        await until(pilot, lambda: "chart 2 of 6" in screen_text(app))


async def test_the_base_stays_the_base_when_another_session_is_gone(home: Path, store: Callable[..., Path]) -> None:
    for n in (1, 2, 3):
        story = whole(f"s-{n}", started=1_760_000_000.0 + n)
        story.rows[0][1]["name"] = f"number-{n}"
        store(f"261121-0{n}0000-aa", story)
    async with console(home, size=(160, 50)) as (app, pilot):
        await pilot.press("g", "space", "space", "space", "c")
        await until(pilot, lambda: "number-1" in screen_text(app) and "test result" in screen_text(app))
        await pilot.press("b")
        await until(pilot, lambda: "number-2 base" in screen_text(app))
        shutil.rmtree(home / "sessions" / "261121-030000-aa")  # the first of the columns
        await until(pilot, lambda: "no longer in this store" in screen_text(app))
        assert "number-2 base" in screen_text(app)


async def opened(home: Path, ident: str, words: str) -> None:
    app = ConsoleApp(home, ident)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: words in screen_text(app))


async def test_a_session_that_does_not_fold_says_so(home: Path, store: Callable[..., Path]) -> None:
    change(store() / DATABASE, "DELETE FROM plan")
    await opened(home, "261121-010000-aa", "This session cannot be read: session 261121-010000-aa is damaged")


async def test_a_session_that_no_list_shows_is_not_drawn(home: Path, store: Callable[..., Path]) -> None:
    change(store() / DATABASE, "UPDATE session SET settings = '[]'")
    await opened(home, "261121-010000-aa", "This session cannot be read: session 261121-010000-aa is damaged")


async def test_another_copy_in_its_place_is_told_of(home: Path, store: Callable[..., Path]) -> None:
    place = store()
    async with console(home, "261121-010000-aa") as (app, pilot):
        shutil.copytree(place, home / "copy")
        place.rename(home / "away")
        (home / "copy").rename(place)
        await until(pilot, lambda: "has taken its place" in screen_text(app))


async def test_a_session_that_was_locked_is_opened_once_it_is_not(
    home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "connect", functools.partial(connect, timeout=0.1))
    place = store()
    app = ConsoleApp(home, "261121-010000-aa")
    with contextlib.closing(sqlite3.connect(place / DATABASE, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: "another program has" in screen_text(app).replace("\n", " "))
            other.close()
            await until(pilot, lambda: "collect_wood" in screen_text(app))
            assert "cannot be read" not in screen_text(app).partition("1 Plan")[0]
