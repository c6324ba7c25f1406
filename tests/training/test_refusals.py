"""Errors that an operator gets as a sentence, and the exit codes of README.md."""

from __future__ import annotations

import errno

import pytest

from rlgpt.console.commands.failure import Exit
from rlgpt.store.errors import BadBundle, BadPlace, DiskFull
from rlgpt.store.settings import Refused
from rlgpt.training.experiments.declared import Undeclared
from rlgpt.training.host.client.errors import HostError
from rlgpt.training.session.creation import CannotCreate
from rlgpt.training.session.refusals import refusal_of
from rlgpt.training.worlds.protocol import UnknownTask, WorldFailed
from rlgpt.training.worlds.registry import UnknownWorld, WorldLacksSomething


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CannotCreate("a sentence", Exit.UNAVAILABLE), Exit.UNAVAILABLE),
        (UnknownTask("a sentence"), Exit.USAGE),
        (UnknownWorld("a sentence"), Exit.USAGE),
        (WorldLacksSomething("a sentence"), Exit.UNAVAILABLE),
        (WorldFailed("a sentence"), Exit.UNAVAILABLE),
        (BadPlace("a sentence"), Exit.UNAVAILABLE),
        (DiskFull("a sentence"), Exit.UNAVAILABLE),
        (BadBundle("a sentence"), Exit.USAGE),
        (HostError("a sentence"), Exit.USAGE),
        (Refused("a sentence"), Exit.USAGE),
        (Undeclared("a sentence"), Exit.USAGE),
    ],
)
def test_an_error_with_a_sentence_is_told_by_it(error: Exception, code: Exit) -> None:
    assert refusal_of(error) == ("a sentence", code)


def test_a_full_disk_is_told_with_its_place() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/home/ann/.rlgpt")
    assert refusal_of(full) == ("/home/ann/.rlgpt: No space left on device", Exit.UNAVAILABLE)
    assert refusal_of(FileNotFoundError(errno.ENOENT, "No such file", "x.py")) == ("x.py: No such file", Exit.USAGE)


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("x"), AssertionError("x")])
def test_a_mistake_of_ours_has_no_sentence(error: Exception) -> None:
    assert refusal_of(error) is None
