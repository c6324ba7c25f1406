"""What the console asks of child processes: nobody waits for imports twice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from driving import console, until

from rlgpt.console import answers, launch
from rlgpt.console.checker import Checker
from rlgpt.console.commands import children
from rlgpt.console.commands.failure import Failure

ACTION = 'def rest(view):\n    """Stands still."""\n    yield "noop"\n'
SESSION: Any = {"task": "collect_wood", "settings": {"seed": 0}}


def test_one_checker_answers_again_and_again_and_leaves_nothing_behind() -> None:
    checker = Checker("crafter")
    try:
        assert checker.ask("action", ACTION, SESSION)["ok"]
        refused = checker.ask("action", "import os\n" + ACTION, SESSION)
        assert not refused["ok"] and refused["line"] == 1
        assert checker.ask("action", ACTION, SESSION)["ok"], "a refused source changed what is said of another"
        with pytest.raises(Failure, match="no_such_task"):
            checker.ask("action", ACTION, SESSION | {"task": "no_such_task"})
        assert checker.ask("action", ACTION, SESSION)["name"] == "rest"
        child = psutil.Process(checker._child.pid)
        family = [child, *child.children(recursive=True)]
        assert len(family) > 1, "its action host"
    finally:
        checker.close()
    assert psutil.wait_procs(family, timeout=100)[1] == []


def test_what_a_child_prints_that_is_no_text_hides_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    prints = """import os; os.write(2, bytes([255])); print('{"ok": 7}')"""
    monkeypatch.setattr(children, "command", lambda *words: [sys.executable, "-c", prints])
    assert children.ask("tasks") == 7
    assert children.run("sessions") == {"ok": 7}


def test_a_checker_for_no_world_says_why() -> None:
    checker = Checker("no_such_world")
    try:
        with pytest.raises(Failure, match="no world called 'no_such_world'"):
            checker.ask("action", ACTION, SESSION)
    finally:
        checker.close()


@pytest.mark.parametrize(
    ("errors", "code", "sentence"),
    [
        ("Hello from the pygame community.\n", -11, "was killed by signal 11; the last line that it printed: Hello"),
        ("step 7\n", 7, "ended with exit code 7; the last line that it printed: step 7; a world can end"),
        ("", 3, "ended with exit code 3 and said nothing; a world can end"),
        ("step 7\nTraceback (most recent call last):\n  ...\nImportError: no torch\n", 1, "ImportError: no torch"),
    ],
)
def test_what_a_world_has_printed_is_not_told_as_the_reason(errors: str, code: int, sentence: str) -> None:
    assert sentence in children.last_words(errors, children.SERVICE, code)
    assert ("rlgpt.training.service" in children.last_words(errors, children.SERVICE, code)) is (code != 1)


async def test_an_answer_is_remembered_shown_at_once_and_mended_when_it_is_no_longer_so(
    home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    store()
    monkeypatch.setattr(launch, "_answers", {})
    monkeypatch.setattr(launch, "foresee", lambda _: None)
    told: list[Any] = []
    async with console(home) as (app, pilot):
        launch.ask(app, "worlds", kept=True, then=told.append)
        await until(pilot, lambda: told)
        assert told == [{"worlds": ["crafter", "kitchen", "minedojo"]}]
        launch.ask(app, "worlds", kept=True, then=told.append)
        assert told[1:] == told[:1], "what was remembered was not there at once"
        await until(pilot, lambda: len(told) == 3)
        (file,) = (home / answers.FOLDER).iterdir()
        file.write_text('{"worlds": ["gone"]}')
        told.clear()
        launch.ask(app, "worlds", kept=True, then=told.append)
        assert told == [{"worlds": ["gone"]}]
        await until(pilot, lambda: len(told) == 2)
        assert told[1] == {"worlds": ["crafter", "kitchen", "minedojo"]}
        file.write_text("{")
        launch.ask(app, "worlds", kept=True, then=told.append)
        await until(pilot, lambda: len(told) == 3)
