"""What is shown of an episode can be stored, whatever a world puts into its views and into its own words for them."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rlgpt.store.plain import MOST_BITS, plain
from rlgpt.training.rollouts.evidence import Describer
from tests.worlds.corridor import CorridorWorld

BOARD = 1 << 5000
TOLD = "a whole number of 5,001 bits"
UNWRITABLE = 1 << 20_000
"""Python refuses to write it in decimal digits."""


def describer(monkeypatch: pytest.MonkeyPatch, view: Any, **parts: Any) -> Describer:
    module = ModuleType("shown_host")
    module.__dict__.update(decoder=lambda: SimpleNamespace(view=lambda packed: view), **parts)
    monkeypatch.setitem(sys.modules, "shown_host", module)
    world = CorridorWorld()
    world.host_module = "shown_host"
    return Describer(world)


def test_a_big_whole_number_of_a_view_is_shown_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    view = SimpleNamespace(at=3, board=BOARD, most=(1 << MOST_BITS) - 1, pieces=(BOARD, -BOARD), by_place={"a": BOARD})
    describe = describer(monkeypatch, view)
    shown = describe(b"")
    assert (shown["at"], shown["board"], shown["pieces"]) == (3, TOLD, [TOLD, TOLD])
    assert shown["most"] == view.most and shown["by_place"] == {"a": TOLD}
    assert plain(shown) == shown and plain(describe.moment(b""))["board"] == TOLD


def test_numbers_that_cannot_be_written_end_nothing_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = ((((((UNWRITABLE,),),),),),)
    describe = describer(monkeypatch, SimpleNamespace(deep=deep, keys={UNWRITABLE: 1}, whole=UNWRITABLE))
    shown = describe(b"")
    assert plain(shown) == shown and shown["whole"] == "a whole number of 20,001 bits"


def test_a_worlds_own_words_are_kept_as_they_are_but_for_what_no_row_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    long, holds_itself = list(range(100)), []
    holds_itself.append(holds_itself)
    own = {"board": BOARD, "cells": long, "raw": b"\0", "seen": {2, 1}, 7: {"deep": [[[[[[UNWRITABLE]]]]]]}}
    describe = describer(
        monkeypatch, SimpleNamespace(), describe=lambda view: own | {"loop": holds_itself},
        moment=lambda view: {"board": BOARD, "raw": b"\0", UNWRITABLE: 1},
    )  # fmt: skip
    shown, moment = describe(b""), describe.moment(b"")
    assert plain(shown) == shown and plain(moment) == moment and moment["board"] == TOLD
    assert (shown["board"], shown["cells"], shown["seen"]) == (TOLD, long, [1, 2])
    assert shown["7"] == {"deep": [[[[[["a whole number of 20,001 bits"]]]]]]}
