"""An app to press keys in, and what its screen says as plain text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from conftest import NOW
from textual.pilot import Pilot
from textual.widgets import Input

from rlgpt.console.app import ConsoleApp
from rlgpt.console.screens.session import SessionScreen
from tests.patience import PATIENCE

SIZES = ((80, 24), (120, 40), (200, 60))


def screen_text(app: ConsoleApp) -> str:
    """The cells of the screen as lines of text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


async def until(pilot: Pilot[Any], condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until `condition` holds; fails with the screen's text when it never does."""
    for _ in range(int(seconds * PATIENCE / 0.02)):
        if condition():
            await pilot.pause()
            return
        await asyncio.sleep(0.02)
        await pilot.pause()
    raise AssertionError(f"never came true; the screen says\n{screen_text(pilot.app)}")  # type: ignore[arg-type]


@asynccontextmanager
async def console(
    home: Path, session: str | None = None, size: tuple[int, int] = (120, 40), **more: Any
) -> AsyncIterator[tuple[ConsoleApp, Pilot[int]]]:
    """The console with its first screen drawn from the store."""
    app = ConsoleApp(home, session, clock=more.pop("clock", lambda: NOW), **more)
    async with app.run_test(size=size) as pilot:
        if session is None:
            await until(pilot, lambda: "reading …" not in screen_text(app))
        else:
            await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
            await until(pilot, lambda: "reading…" not in screen_text(app))
        yield app, pilot


def still(app: ConsoleApp) -> None:
    """No blinking cursor, so that two pictures are equal."""
    for box in app.screen.query(Input):
        box.cursor_blink = False
