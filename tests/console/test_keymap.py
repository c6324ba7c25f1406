"""A user's keymap: what is wrong in it is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from driving import console, screen_text, until

import rlgpt.console
from rlgpt.console.app import ConsoleApp
from rlgpt.console.keymap import FILE, KEYS, TOGETHER, conflicts, user_keys
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.dialogs import Ask, Confirm
from rlgpt.console.screens.help import SCOPES, HelpScreen
from rlgpt.console.view.text import plain, width_of


def test_the_table_itself_and_its_own_keys_are_no_conflict() -> None:
    assert conflicts({}) == []
    assert conflicts({key.id: key.keys for key in KEYS}) == []
    assert {key.scope for key in KEYS} == {scope for scopes in TOGETHER for scope in scopes}


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"session.pause": "f9,o"}, "o is the key of session.override and of session.pause"),
        ({"curves.smooth": "z"}, "z is the key of curves.smooth and of session.zoom"),
        ({"sessions.new": "j"}, "j is the key of sessions.new and of list.down"),
        ({"doctor.again": "question_mark"}, "question_mark is the key of doctor.again and of app.help"),
    ],
)
def test_a_key_that_is_given_twice_in_one_place_is_said(own: dict[str, str], said: str, tmp_path: Path) -> None:
    assert [sentence for sentence in conflicts(own) if sentence.startswith(said)]
    (tmp_path / FILE).write_text("".join(f'"{name}" = "{keys}"\n' for name, keys in own.items()))
    found, wrong = user_keys(tmp_path)
    assert found == own and any(said in sentence for sentence in wrong)


def test_keys_of_different_places_and_swapped_keys_are_no_conflict() -> None:
    assert conflicts({"sessions.new": "f9", "session.pause": "f9"}) == []
    assert conflicts({"session.pause": "o", "session.override": "p"}) == []


def test_every_key_of_the_console_is_in_the_table_and_in_the_help() -> None:
    folder = Path(*rlgpt.console.__path__)
    others = [path for path in folder.rglob("*.py") if path.name != "keymap.py" and "Binding(" in path.read_text()]
    assert others == []
    assert set(SCOPES) == {key.scope for key in KEYS}


async def test_the_help_says_all_words_at_every_size(home: Path) -> None:
    async with console(home, size=(120, 40)) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and app.screen.query_one(Lines).entries)
        shown = app.screen.query_one(Lines)
        for size in (120, 40), (80, 24), (60, 20), (200, 60):
            await pilot.resize_terminal(*size)

            def widest(shown: Lines = shown) -> int:
                return max(width_of(line) for entry in shown.entries for line in entry.lines)

            await until(pilot, lambda size=size: app.size == size and widest() == shown.width)
            entries = {entry.key: [plain(line) for line in entry.lines] for entry in shown.entries}
            for key in KEYS:
                told = " ".join(line[16:].strip() for line in entries[key.id])
                assert told.split() == key.help.split()
                assert not any("…" in line[:16] for line in entries[key.id])


async def test_the_keys_of_a_dialog_can_be_chosen_and_the_dialog_says_them(home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / FILE).write_text('"form.send" = "f9"\n"form.leave" = "f8"\n"confirm.yes" = "f7"\n')
    answers: list[str | None] = []
    async with console(home) as (app, pilot):
        app.push_screen(Ask("Why", long=True), answers.append)
        await until(pilot, lambda: "f9 sends, f8 leaves" in screen_text(app))
        await pilot.press("x", "f9")
        await until(pilot, lambda: answers == ["x"])
        app.push_screen(Ask("Why", long=True), answers.append)
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("y", "f8")
        await until(pilot, lambda: isinstance(app.screen, Confirm) and "(f7)" in screen_text(app))
        await pilot.press("f7")
        await until(pilot, lambda: answers == ["x", None])


async def test_a_key_that_the_pane_answers_is_not_said_to_do_nothing(
    home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda app, sentence, *more, **other: said.append(sentence))
    store()
    async with console(home, "261121-010000-aa") as (_, pilot):
        await pilot.press("3", "i")  # the curves' zoom
        await pilot.pause()
        assert said == []
        await pilot.press("1", "i")
        await until(pilot, lambda: said and "end call" in said[-1])
