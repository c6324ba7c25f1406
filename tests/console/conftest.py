"""Sessions on disk for the console's tests, and an app to open them in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sample_sessions import whole
from story import STARTED, Story

NOW = STARTED + 100_000.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store; `RLGPT_HOME` is set."""
    place = tmp_path / "home"
    monkeypatch.setenv("RLGPT_HOME", str(place))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    return place


@pytest.fixture
def store(home: Path) -> Callable[..., Path]:
    """Writes a story; returns its folder."""
    from stored import write

    def put(ident: str = "261121-010000-aa", story: Story | None = None) -> Path:
        told = story or whole()
        return write(ident, told.rows, told.texts)

    return put


@pytest.fixture
def two_sessions(home: Path, store: Callable[..., Path]) -> Path:
    """A home with a finished session and one whose worker is dead."""
    store("261121-010000-aa")
    store("261121-020000-bb", whole("s-2", llm="openai", ended=False, started=STARTED + 5_000))
    return home
