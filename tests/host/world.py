"""A world as small as a host needs: a corridor of cells, some coins, the cells seen so far."""

from __future__ import annotations

from typing import cast

from rlgpt.training.worlds.protocol import World
from tests.host import side


class Corridor:
    name = "corridor"
    host_module = "tests.host.side"
    native_action_size = side.NATIVE_ACTION_SIZE


WORLD = cast(World, Corridor())


def packed(at: int, coins: int = 0, whole: bool = False) -> bytes:
    """A view for the host."""
    return side.PACKED.pack(at, coins, whole)
