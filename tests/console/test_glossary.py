"""The words of the console are those of the documentation, and `?` finds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import console, screen_text, until

from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.help import HelpScreen
from rlgpt.console.view import glossary

DOCS = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_the_console_has_the_glossary_of_the_documentation() -> None:
    assert glossary.FILE.read_text() == DOCS.read_text(), "cp docs/glossary.md console/glossary.md"


def test_every_row_of_the_glossary_is_a_term() -> None:
    rows = [text for text in DOCS.read_text().splitlines() if text.startswith("| ") and text != "| word | meaning |"]
    assert len(glossary.terms()) == len(rows) > 40
    assert all(term.section and term.word and term.meaning for term in glossary.terms())


@pytest.mark.parametrize("word", ["dead loop", "best so far", "follow_plan"])
async def test_a_word_is_explained_where_help_is_searched(home: Path, word: str) -> None:
    meaning = next(term.meaning for term in glossary.terms() if term.word == word)
    async with console(home) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and bool(app.screen.query_one(Lines).entries))
        await pilot.press(*(character if character != " " else "space" for character in word))
        await until(pilot, lambda: " ".join(meaning.split()[:4]) in screen_text(app))
        await pilot.press("enter")  # a word is no action
        assert isinstance(app.screen, HelpScreen)
