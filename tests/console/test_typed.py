"""What a person types into a dialog: no path overwrites anything, and nothing that can be typed ends the console."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from driving import console, screen_text, until
from textual.command import Hit
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Input

from rlgpt.console import launch
from rlgpt.console.actions import Actions
from rlgpt.console.app import ConsoleApp
from rlgpt.console.screens.dialogs import Ask
from rlgpt.console.screens.item import ItemDialog
from rlgpt.console.screens.skills import SkillsScreen
from rlgpt.store import skills as library
from rlgpt.store.history import Item
from rlgpt.store.skills import Skill, keep

SKILL = Skill("chop", "crafter", "chop", "Chop.", "def chop(view):\n    yield DO\n", "True", 5, 5, "s-1", 1_700_000_000)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sentences: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda app, sentence, *more, **other: sentences.append(sentence))
    return sentences


async def answer(app: ConsoleApp, pilot: Pilot[int], key: str, text: str) -> None:
    await pilot.press(key)
    await until(pilot, lambda: isinstance(app.screen, Ask))
    app.screen.query_one(Input).value = text
    await pilot.press("enter")


async def test_skills_are_written_to_new_files_only_and_read_again(
    home: Path, tmp_path: Path, said: list[str]
) -> None:
    keep(SKILL)
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    async with console(home) as (app, pilot):
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, SkillsScreen) and app.screen._skill is not None)
        await answer(app, pilot, "e", str(mine))
        await until(pilot, lambda: said == [f"{mine} is already there."])
        assert mine.read_text() == "mine"
        await answer(app, pilot, "e", "~nobody-is-called-so/skill.json\0")
        await until(pilot, lambda: "cannot be written" in said[-1])
        link, target = tmp_path / "link.json", tmp_path / "target.json"
        link.symlink_to(target)
        await answer(app, pilot, "e", str(link))
        await until(pilot, lambda: said[-1] == f"written to {link}")
        assert link.is_symlink() and target.is_file()
        library.retire(SKILL.hash)
        await answer(app, pilot, "i", "~nobody-is-called-so/skill.json")
        await until(pilot, lambda: said[-1].startswith("there is no file ~nobody-is-called-so"))
        await answer(app, pilot, "i", "/dev/zero")
        await until(pilot, lambda: said[-1] == "there is no file /dev/zero")
        await answer(app, pilot, "i", str(target))
        await until(pilot, lambda: said[-1] == f"read {target}")
    assert [skill.name for skill in library.skills()] == ["chop"]


async def test_a_retired_skill_can_be_taken_back_and_the_footer_says_so(home: Path) -> None:
    keep(SKILL)
    async with console(home) as (app, pilot):
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, SkillsScreen) and "r retire" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: "r take back" in screen_text(app))
        assert library.skills() == []
        await pilot.press("r")
        await until(pilot, lambda: "r retire" in screen_text(app) and len(library.skills()) == 1)


async def test_a_session_is_exported_to_where_a_shell_would_write_it(
    home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store("261121-010000-aa")
    asked: list[Sequence[str]] = []

    def run(app: Any, *words: str, **other: Any) -> None:
        asked.append(words)

    monkeypatch.setattr(launch, "run", run)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    async with console(home) as (app, pilot):
        await until(pilot, lambda: "261121-010000-aa" in str(getattr(app.screen, "selected", "")))
        for typed in ("~/mine.rlgpt", "-"):
            await answer(app, pilot, "e", typed)
    assert [words[-1] for words in asked if words[0] == "export"] == [f"{tmp_path}/mine.rlgpt", f"{tmp_path}/-"]


@pytest.mark.parametrize("typed", ["0", "2001", "²", "1e3", "", pytest.param("9" * 5000, id="5000 digits")])
async def test_the_env_steps_of_a_trial_are_a_number_that_can_be_read(home: Path, typed: str) -> None:
    async with console(home) as (app, pilot):
        app.push_screen(ItemDialog(None, lambda _: ""))
        await until(pilot, lambda: isinstance(app.screen, ItemDialog))
        for name, value in (("name", "dig"), ("goal", "Dig."), ("done_when", "True"), ("max_steps", typed)):
            app.screen.query_one(f"#{name}", Input).value = value
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "whole number from 1 to 2000" in str(app.screen.query_one("#fault").render()))


async def test_no_field_hands_raw_text_of_a_model_to_the_terminal(home: Path) -> None:
    goal = "Collect wood.\x1b]52;c;aGk=\x1b\\\x1b[2J\u009b41m\u202e"
    answers: list[dict[str, Any] | None] = []
    async with console(home) as (app, pilot):
        item = Item("get", "code", goal, "", "True", 30, False, "slow")
        app.push_screen(ItemDialog(item, lambda _: ""), answers.append)
        await until(pilot, lambda: isinstance(app.screen, ItemDialog))
        shown = app.screen.query_one("#goal", Input).value
        assert shown.startswith("Collect wood.") and not set(shown) & set("\x1b\u009b\u202e")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: answers)
    assert answers == [None]


async def test_a_screen_that_cannot_be_saved_is_said(home: Path, said: list[str]) -> None:
    async with console(home) as (_, pilot):
        home.mkdir(exist_ok=True)
        (home / "screenshots").touch()
        await pilot.press("f5")
        await until(pilot, lambda: said and "the screen was not saved" in said[-1])


async def test_a_folder_that_is_gone_is_no_place_to_export_to(
    home: Path, store: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store()
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with console(home) as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        assert app.screen.query_one(Input).value.startswith(str(Path("~").expanduser()))
    monkeypatch.chdir(tmp_path)


async def test_a_word_that_is_pasted_ten_thousand_times_is_marked_once(home: Path) -> None:
    async with console(home) as (app, _):
        hits = [hit async for hit in Actions(app.screen).search("sess ion " * 10_000)]
    shown = [hit.match_display for hit in hits if isinstance(hit, Hit)]
    assert any(isinstance(name, Content) and name.plain == "Start a new session" for name in shown)
    assert all(len(name.spans) <= 2 for name in shown if isinstance(name, Content))
