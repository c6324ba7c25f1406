"""What `rlgpt doctor` prints, without the checks that take seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlgpt.console.commands import doctor
from rlgpt.console.commands.doctor import Finding

from .conftest import Answer

sys.path.insert(0, str(Path(__file__).parents[1] / "console"))

from terminal import Terminal

Cli = Callable[..., Answer]


def areas(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    """Put these in place of what is looked at."""
    looks = {finding.area: (lambda finding=finding: iter([finding])) for finding in findings}
    monkeypatch.setattr(doctor, "AREAS", looks)


def test_it_ends_with_what_the_findings_come_to(rlgpt: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    good, lacking = Finding("a", "sound", True, "fine"), Finding("b", "place", False, "gone", "mend it")
    spare = Finding("c", "gpu", False, "none", optional=True)
    areas(monkeypatch, good, spare)
    assert rlgpt("doctor").out.splitlines()[-1] == (
        "everything that sessions need is here; 1 optional thing not available."
    )
    areas(monkeypatch, good, lacking)
    answer = rlgpt("doctor")
    assert answer.out.splitlines()[-1] == "needed and missing: place." and answer.code == 9
    assert rlgpt("doctor", "--json").document["ok"] is False


def test_an_area_is_named_before_it_is_looked_at(
    rlgpt: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []

    def slow() -> Iterator[Finding]:
        said.append(capsys.readouterr().out)
        yield Finding("slow", "look", True, "done")

    monkeypatch.setattr(doctor, "AREAS", {"slow": slow})
    rlgpt("doctor")
    assert said == ["slow\n"]


def test_the_size_is_that_of_the_terminal_also_where_the_answer_is_read_by_a_program(home: Path) -> None:
    code = (
        "import subprocess, sys; words = [sys.executable, '-c', 'from rlgpt.console.commands.doctor import _terminal;"
        "print(next(_terminal()).sentence)']; print(subprocess.run(words, capture_output=True, text=True).stdout)"
    )
    with Terminal([sys.executable, "-c", code], (101, 33)) as terminal:
        terminal.until("101x33")


def test_a_store_that_cannot_be_written_is_missing(rlgpt: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system mounted for reading alone."""
    monkeypatch.setattr(doctor, "AREAS", {"store": doctor._store})
    assert rlgpt("doctor").code == 0
    home.mkdir(exist_ok=True)
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: Path(path) != home)
    answer = rlgpt("doctor")
    assert answer.code == 9 and f"{home} cannot be written" in answer.out and "set RLGPT_HOME" in answer.out

    def refused(place: Path) -> None:
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(doctor.folder, "check_place", refused)
    answer = rlgpt("doctor")
    assert answer.code == 9 and f"{home} is out of reach" in answer.out and "set RLGPT_HOME" in answer.out


def test_the_installation_of_minedojo_says_its_options_and_hands_them_over(rlgpt: Cli) -> None:
    shown = rlgpt("minedojo", "install", "--help").out
    assert all(option in shown for option in ("--same-venv", "--python", "--json"))
    answer = rlgpt("minedojo", "install", "--python", "/no/such/python")
    assert answer.code == 5
    assert rlgpt("minedojo", "install", "--sme-venv").code == 2
