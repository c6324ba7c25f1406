"""The filter line of a session's panes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from driving import console, screen_text


async def test_code_is_not_filtered_away_and_a_filter_left_with_the_mouse_is_closed(
    home: Path, store: Callable[..., Path]
) -> None:
    store()
    async with console(home, "261121-010000-aa") as (app, pilot):
        await pilot.press("2", "slash")
        assert not app.screen.query_one("#filter").has_class("-open") and "/ filter" not in screen_text(app)
        await pilot.press("6", "slash", "p", "l")
        assert app.screen.query_one("#filter").has_class("-open")
        await pilot.click("#plan", offset=(5, 3))
        await pilot.pause()
        assert not app.screen.query_one("#filter").has_class("-open")
