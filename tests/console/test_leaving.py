"""Nothing that a person typed or edited is dropped without a question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from driving import console, screen_text, until
from story import whole
from textual.widgets import Input, TextArea

from rlgpt.console.screens.dialogs import Advise, Confirm
from rlgpt.console.screens.item import ItemDialog
from rlgpt.console.screens.override import OverrideScreen
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.screens.verdict import VerdictDialog
from rlgpt.store.lease import Lease

LIVE = "261121-020000-bb"


@pytest.fixture
def live(store: Callable[..., Path], home: Path) -> Path:
    store(LIVE, whole(LIVE, ended=False))
    return home


@pytest.mark.parametrize("opened_on", [LIVE, None])
@pytest.mark.parametrize("key", ["q", "escape", "ctrl+q"])
async def test_the_override_editor_asks_before_it_drops_edits(live: Path, key: str, opened_on: str | None) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, opened_on) as (app, pilot):
            if opened_on is None:
                await pilot.press("enter")
                await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
            await pilot.press("o")
            await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
            await pilot.press("m", key)
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            assert "edits of the plan were not sent" in screen_text(app)
            await pilot.press("n")
            await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
            assert isinstance(app.screen, OverrideScreen) and app.screen.draft.changed
            await pilot.press(key, "y")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            await pilot.press("o")
            await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))


@pytest.mark.parametrize(
    ("keys", "dialog"), [(("a",), Advise), (("v",), VerdictDialog), (("o", "e"), ItemDialog), (("o", "a"), ItemDialog)]
)
async def test_a_dialog_asks_before_it_drops_what_was_typed(
    live: Path, keys: tuple[str, ...], dialog: type[Advise | VerdictDialog | ItemDialog]
) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            for key in keys:
                await pilot.press(key)
                await pilot.pause(0.1)
            await until(pilot, lambda: isinstance(app.screen, dialog))
            field = next(iter(app.screen.query("#goal, #text, #cause")))
            if isinstance(field, TextArea):
                field.text = "typed"
            else:
                assert isinstance(field, Input)
                field.value = "typed"
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            await pilot.press("n")
            await until(pilot, lambda: isinstance(app.screen, dialog))
            await pilot.press("escape", "y")
            await until(pilot, lambda: not isinstance(app.screen, dialog | Confirm))
