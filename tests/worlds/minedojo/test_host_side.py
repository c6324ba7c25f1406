"""Views and named actions of Minecraft, as the action host sees them: no client needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlgpt.training.worlds.minedojo import features, host_side
from rlgpt.training.worlds.minedojo.host_side import NOOP, NVEC, Sight, View
from rlgpt.training.worlds.minedojo.items import CRAFT_ITEMS, HAND_ITEMS, SMELT_ITEMS, TABLE_ITEMS
from rlgpt.training.worlds.minedojo.settings import Settings
from rlgpt.training.worlds.minedojo.world import FUNCTION_OF_HEAD, PRIMITIVES, MineDojoWorld


def packed(**changes: Any) -> bytes:
    raw: dict[str, Any] = {
        "step": 3, "time_left": 197, "health": 20.0, "food": 20.0, "armor": 0.0, "oxygen": 300.0, "x": 0.5, "y": 4.0,
        "z": 0.5, "yaw": 0.0, "pitch": 0.0, "biome": 1, "light": 15.0,
        "slots": [[0, "bucket", 1], [3, "log", 4], [7, "log", 2]], "holding": "bucket", "near_table": False,
        "near_furnace": False, "sights": [["cow", True, 5.5, -20.0, 10.0, 0]],
        "memories": [["sheep", True, 9.0, 170.0, 5.0, 12]], "voxels": ["air"] * 27, "craftable": ["planks"],
        "equippable": [3, 7], "placeable": [3, 7], "refused": "",
    }  # fmt: skip
    return json.dumps({**raw, **changes}).encode()


@pytest.fixture
def view() -> View:
    return host_side.decoder().view(packed())


def test_slots_of_one_item_are_counted_together(view: View) -> None:
    assert dict(view.inventory) == {"bucket": 1, "log": 6}


def test_a_description_is_plain_and_short(view: View) -> None:
    told = host_side.describe(view)
    assert told["sees"] == {"cow": "6 blocks off, -20 degrees to the right"}
    assert len(json.dumps(told)) < 600


def test_a_view_cannot_be_changed(view: View) -> None:
    with pytest.raises(AttributeError):
        view.health = 3.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        view.inventory["log"] = 9  # type: ignore[index]


def test_every_named_action_is_a_legal_native_vector(view: View) -> None:
    made = [
        host_side.act("left", 45, -30, jump=True, do="use"), host_side.move(sprint=True), host_side.turn(-180),
        host_side.face(view.sights[0]), host_side.use(), host_side.attack(), host_side.craft("planks"),
        host_side.smelt("iron_ingot"), host_side.equip(view, "log"), host_side.place(view, "log"), NOOP,
    ]  # fmt: skip
    for command in made:
        assert host_side.encode(command) == command


@pytest.mark.parametrize(("degrees", "bin_"), [(0, 12), (15, 13), (-15, 11), (22, 13), (23, 14), (400, 24), (-999, 0)])
def test_angles_go_to_the_nearest_camera_bin(degrees: float, bin_: int) -> None:
    assert host_side.turn(degrees)[4] == bin_
    assert host_side.turn(0, tilt=degrees)[3] == bin_


def test_repeated_actions_are_generators_that_end_with_the_last_view() -> None:
    call = host_side.attack(3)
    assert [next(call), call.send("a"), call.send("b")] == [host_side.attack()] * 3  # type: ignore[arg-type,union-attr]
    with pytest.raises(StopIteration) as end:
        call.send("last")  # type: ignore[union-attr]
    assert end.value.value == "last"


@pytest.mark.parametrize(
    ("yielded", "said"),
    [
        ("forward", "named action"),
        ([*NOOP], "tuple"),
        (NOOP[:7], "8 integers"),
        ((True, *NOOP[1:]), "forward / back"),
        ((*NOOP[:6], 244, 0), "craft item"),
        ((*NOOP[:7], -1), "slot"),
        ((1.0, *NOOP[1:]), "integer"),
    ],
)
def test_a_bad_yield_is_refused_with_a_sentence_that_helps(yielded: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        host_side.encode(yielded)


def test_what_is_not_in_the_inventory_cannot_be_equipped_or_placed(view: View) -> None:
    with pytest.raises(ValueError, match="no diamond"):
        host_side.equip(view, "diamond")
    with pytest.raises(ValueError, match="no bucket"):
        host_side.place(view, "bucket")
    assert host_side.equip(view, "bucket") == NOOP  # held already


def test_nearest_is_what_is_in_sight_and_remembered_what_was(view: View) -> None:
    assert host_side.nearest(view, "sheep") is None
    assert host_side.remembered(view, "sheep") == Sight("sheep", True, 9.0, 170.0, 5.0, 12)
    assert host_side.remembered(view, "cow") == view.sights[0]


@pytest.mark.parametrize(
    ("yaw", "ahead"), [(0, (0, 0, 1)), (90, (-1, 0, 0)), (180, (0, 0, -1)), (-90, (1, 0, 0)), (45, (-1, 0, 1))]
)
def test_block_looks_where_one_faces(yaw: float, ahead: tuple[int, int, int]) -> None:
    voxels = ["air"] * 27
    x, y, z = (part + 1 for part in ahead)
    voxels[x * 9 + y * 3 + z] = "log"
    seen = host_side.decoder().view(packed(yaw=yaw, voxels=voxels))
    assert host_side.block(seen, 1, 0, 0) == "log"
    assert host_side.block(seen, -1, 0, 0) == "air"


def test_crafting_and_smelting_know_their_own_items() -> None:
    assert len(CRAFT_ITEMS) == len(set(CRAFT_ITEMS)) == 244
    assert set(HAND_ITEMS).isdisjoint(TABLE_ITEMS) and set(SMELT_ITEMS).isdisjoint(HAND_ITEMS + TABLE_ITEMS)
    # the indices that the design names
    known = {"crafting_table": 7, "planks": 29, "shears": 38, "stick": 41, "torch": 48, "bed": 65, "bucket": 80,
             "furnace": 119, "iron_pickaxe": 146, "stone_pickaxe": 207, "wooden_pickaxe": 219, "cooked_beef": 228,
             "iron_ingot": 239}  # fmt: skip
    assert {name: CRAFT_ITEMS.index(name) for name in known} == known
    with pytest.raises(ValueError, match="cannot be crafted"):
        host_side.craft("iron_ingot")
    with pytest.raises(ValueError, match="cannot be smelted"):
        host_side.smelt("planks")


def test_the_policys_heads_are_the_papers() -> None:
    world = MineDojoWorld(Settings(python="/nowhere"))
    assert world.action_nvec == (12, 3) and len(PRIMITIVES) == 12
    commands = {world.native_action((a, b)) for a in range(12) for b in range(3)}
    assert len(commands) == 36
    assert all(all(0 <= v < n for v, n in zip(c, NVEC, strict=True)) for c in commands)
    assert world.native_action((11, 1)) == (0, 0, 0, 12, 14, 1, 0, 0)  # 30 degrees to the right, use
    assert FUNCTION_OF_HEAD == (0, 1, 3)


def test_previous_action_has_a_category_for_each_movement_and_function() -> None:
    native_action = MineDojoWorld.native_action
    seen = {features.command_category(native_action(None, (a, b))) for a in range(12) for b in range(3)}  # type: ignore[arg-type]
    assert len(seen) == 36
    assert features.command_category((1, 2, 3, 5, 6, 4, 7, 0)) // 8 == 12
