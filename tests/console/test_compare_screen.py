"""Compare with sessions that vanish or cannot be read; what it counts."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from pathlib import Path

from driving import console, screen_text, until
from moments import moment
from sample_sessions import whole

from rlgpt.console import app as console_app
from rlgpt.console.view import compare
from rlgpt.store import folder
from rlgpt.store.commands import parse_command


def test_only_overrides_count_as_overrides() -> None:
    s = whole()
    for number in range(3):
        s.command(f"p{number}", parse_command("pause", {}), None)
    facts = dict(compare._facts([moment(s)]))
    assert facts["overrides"] == ["1"]


async def test_a_comparison_goes_on_without_a_session_that_is_gone(home: Path, store: Callable[..., Path]) -> None:
    gone, _ = store("261121-010000-aa"), store("261121-020000-bb", whole("s-2"))
    async with console(home) as (app, pilot):
        await pilot.press("g", "space", "space", "c")
        await until(pilot, lambda: "2 sessions, chart" in screen_text(app))
        assert "open" not in screen_text(app).splitlines()[-1]
        shutil.rmtree(gone)
        await until(pilot, lambda: "no longer in this store" in screen_text(app))
        assert "1 session, chart" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: "1 marked" in screen_text(app))


async def test_a_comparison_of_unreadable_sessions_says_why(home: Path, store: Callable[..., Path]) -> None:
    for place in (store("261121-010000-aa"), store("261121-020000-bb", whole("s-2"))):
        (place / folder.DATABASE).write_bytes(b"not a database" * 100)
    async with console(home) as (app, pilot):
        await pilot.press("g", "space", "space", "c")
        await until(pilot, lambda: "file is not a database" in screen_text(app) and "Facts" in screen_text(app))
        assert "reading …" not in screen_text(app)


def test_the_console_may_open_as_many_files_as_its_user() -> None:
    """More than 50 sessions in one comparison did not open where a shell allows 256 files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        console_app.allow_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(console_app.MOST_FILES, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
