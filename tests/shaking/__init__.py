"""Shakes the time of the tests, where the environment variable RLGPT_TEST_SHAKE holds a seed. See CONTRIBUTING.md."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from rlgpt.store import inbox
from tests.shaking.delays import VARIABLE, around, length, shake

SHAKEN = {
    "tests.agents.chat_server.ChatServer": ("_reply",),
    "tests.console.terminal.Terminal": ("press", "until"),
    "tests.console.tmux.Tmux": ("keys", "until"),
    "tests.end_to_end.conftest.Running": ("history", "rows", "start", "trainer", "processes"),
    "tests.store.postgres.Server": ("stop", "start"),
}
"""Class -> its methods by which a test asks a session for something, or does something to it."""


def asked() -> bool:
    return bool(os.environ.get(VARIABLE))


def shake_processes() -> None:
    """This one and those that tests start. Before modules of tests are imported, which may take functions by name."""
    here = str(Path(__file__).parent)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if here not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, *paths)))
    shake()
    inbox.send = around(inbox.send)
    press = Pilot.press

    async def late(pilot: Pilot[Any], *keys: str) -> None:
        for key in keys:
            await asyncio.sleep(length(0.5))
            await press(pilot, key)

    Pilot.press = late  # type: ignore[method-assign]


def shake_helpers() -> None:
    """Once modules of tests are imported."""
    for name, methods in SHAKEN.items():
        module, _, kind = name.rpartition(".")
        found = getattr(sys.modules.get(module), kind, None)
        for method in methods if found else ():
            if hasattr(found, method):
                setattr(found, method, around(getattr(found, method), 0.3))
