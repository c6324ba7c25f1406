"""What was typed stays in its dialog until it is sent, and code in the editor is the whole code."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from driving import console, screen_text, until
from sample_sessions import whole
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, Select, TextArea

from rlgpt.console import editor
from rlgpt.console.app import ConsoleApp
from rlgpt.console.screens.dialogs import Advise
from rlgpt.console.screens.edit_code import EditCodeScreen
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.screens.skills import SkillsScreen
from rlgpt.console.screens.verdict import VerdictDialog
from rlgpt.store import skills as library
from rlgpt.store.folder import DATABASE, SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.reader import Reader
from rlgpt.store.skills import Skill, keep

LIVE = "261121-020000-bb"


@pytest.fixture
def live(store: Callable[..., Path], home: Path) -> Path:
    store(LIVE, whole(LIVE, ended=False))
    return home


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sentences: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda app, sentence, *more, **other: sentences.append(sentence))
    return sentences


@asynccontextmanager
async def dialog(live: Path, key: str, kind: type[Screen[Any]]) -> AsyncIterator[tuple[ConsoleApp, Pilot[int]]]:
    """A session that runs, with the dialog of a key open."""
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, kind))
            yield app, pilot


async def test_advice_that_is_too_long_stays_in_the_dialog(live: Path, said: list[str]) -> None:
    async with dialog(live, "a", Advise) as (app, pilot):
        area = app.screen.query_one("#text", TextArea)
        area.text = "x" * 20_001
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "20000" in "".join(said))
        assert isinstance(app.screen, Advise) and len(area.text) == 20_001
        area.text = "short"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        with Reader(SessionFolder(live / "sessions" / LIVE)) as reader:
            assert [c["payload"]["text"] for c in reader.commands()] == ["short"]


async def test_a_verdict_that_cannot_be_sent_stays_in_the_dialog(live: Path, said: list[str]) -> None:
    async with dialog(live, "v", VerdictDialog) as (app, pilot):
        app.screen.query_one("#success", Select).value = "no"
        app.screen.query_one("#cause", Input).value = "y" * 20_001
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "20000" in "".join(said))
        assert isinstance(app.screen, VerdictDialog)


async def test_what_a_locked_database_keeps_from_being_sent_stays_in_the_dialog(live: Path, said: list[str]) -> None:
    async with dialog(live, "a", Advise) as (app, pilot):
        app.screen.query_one("#text", TextArea).text = "kept"
        base = sqlite3.connect(live / "sessions" / LIVE / DATABASE, isolation_level=None)
        with contextlib.closing(base):
            base.execute("BEGIN IMMEDIATE")
            await pilot.press("ctrl+s")
            await until(pilot, lambda: "could not be sent" in "".join(said))
        assert isinstance(app.screen, Advise) and app.screen.query_one("#text", TextArea).text == "kept"


async def test_the_own_editor_gives_back_all_that_it_saved(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = f"TABLE = ({'1,' * 2_000})  # the end"
    saved = "\n".join([table, *(f"#{n}" for n in range(2_500))])
    monkeypatch.setattr(editor, "edit", lambda text, suffix: saved)
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditCodeScreen))
        monkeypatch.setattr(type(app), "suspend", lambda app: contextlib.nullcontext())
        await pilot.press("f4")
        await until(pilot, lambda: "TABLE" in app.screen.query_one("#text", TextArea).text)
        assert app.screen.query_one("#text", TextArea).text == saved


async def test_who_only_looks_changes_nothing_in_the_lists_either(live: Path, said: list[str]) -> None:
    keep(Skill("chop", "crafter", "chop", "Chop.", "def chop(view):\n    yield DO\n", "True", 5, 5, "s-1", 0))
    async with console(live, read_only=True, size=(160, 40)) as (app, pilot):
        listed = app.screen
        assert "READ-ONLY" in screen_text(app) and not {"n new", "f fork", "R resume"} & hints(app)
        await pilot.press(*"nfRtd")
        await pilot.pause()
        assert app.screen is listed
        names = ("new", "fork", "resume", "tag", "delete")
        assert said == [f"{name}: this console is read-only" for name in names]
        await pilot.press("K")
        await until(pilot, lambda: "t test" in screen_text(app))
        await pilot.press(*"ri")
        await pilot.pause()
        assert isinstance(app.screen, SkillsScreen) and [skill.name for skill in library.skills()] == ["chop"]
        await pilot.press("escape", "enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
        await pilot.press("f")
        await until(pilot, lambda: said[-1] == "fork: this console is read-only")
        assert isinstance(app.screen, SessionScreen)


def hints(app: ConsoleApp) -> set[str]:
    """What the footer offers."""
    return set(screen_text(app).splitlines()[-1].strip().split("  "))
