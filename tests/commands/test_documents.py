"""The documents that say what the command line does, held against what it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlgpt.console.commands import failure, tree
from rlgpt.store.folder import SessionFolder

from .conftest import Answer, make

Cli = Callable[..., Answer]
ROOT = Path(__file__).parents[2]
FREE = (
    "settings", "versions", "configuration", "funnel", "option_usage", "tables", "payload", "attempted", "causes",
    "ends", "fields",
)  # fmt: skip
"""Keys whose values are somebody else's tree."""


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key
            if key not in FREE:
                yield from keys(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from keys(inside)


DOCUMENTED = (
    "show last", "sessions", "store size", "store check", "funnel last", "episodes last", "options last", "plan last",
    "calls last", "tree", "leaderboard collect_wood", "inbox",
)  # fmt: skip


@pytest.mark.parametrize("words", [words.split() for words in DOCUMENTED])
def test_every_key_is_documented(rlgpt: Cli, finished: SessionFolder, words: list[str]) -> None:
    text = (ROOT / "docs" / "json.md").read_text()
    printed = set(keys(rlgpt(*words, "--json").document))
    assert printed and not [key for key in printed if f'"{key}"' not in text and f"`{key}`" not in text]


def test_every_exit_code_stands_in_the_readme() -> None:
    rows = re.findall(r"^\| (\d+) \| `?(\w+)`? \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {int(number): name for number, name in rows} == {int(code): code.name.lower() for code in failure.Exit}


def commands(prefix: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield prefix
    else:
        for name, child in inner.items():
            yield from commands(f"{prefix} {name}", child)


def test_every_command_stands_in_the_readme_and_every_other_word_is_refused(rlgpt: Cli) -> None:
    import typer

    text = (ROOT / "README.md").read_text()
    found = sorted(commands("rlgpt", typer.main.get_command(tree.build())))
    missing = [name for name in found if name not in text]
    assert len(found) > 30 and not missing


def test_every_command_that_the_readme_shows_exists(rlgpt: Cli) -> None:
    import typer

    known = set(commands("rlgpt", typer.main.get_command(tree.build())))
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"`rlgpt ([a-z][a-z -]*?)(?=[ `]*(?:`| [A-Z\[]| --| -|\.\.\.))", text)
    wrong = [words for words in shown if not any(f"rlgpt {words}".startswith(name) for name in known)]
    assert shown and not wrong


def test_help_of_every_command_is_one_sentence_or_more(rlgpt: Cli) -> None:
    import typer

    def look(command: Any) -> Iterator[Any]:
        inner = getattr(command, "commands", {})
        for child in inner.values():
            yield child
            yield from look(child)

    silent = [c.name for c in look(typer.main.get_command(tree.build())) if not c.help]
    assert not silent


def test_completion_offers_ids_and_names(rlgpt: Cli) -> None:
    from rlgpt.console.commands.words import complete_session

    session = make("green-tree")
    assert session.id in complete_session("") and complete_session("gre") == ["green-tree"]
