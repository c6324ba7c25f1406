from typing import Any

import pytest

from rlgpt.store.history import Item, PlanState
from rlgpt.store.plan_edits import MOST_ITEMS, BadEdit, parse_edit
from rlgpt.store.plan_edits import apply_edits as apply_parsed


def apply_edits(plan: PlanState, edits: list[dict[str, Any]]) -> tuple[str, list[Item]]:
    return apply_parsed(plan, [parse_edit(edit) for edit in edits])


def plan() -> PlanState:
    items = [
        Item(name, "code", f"get {name}", "because", f"view.{name}", 50, False, "slow") for name in ("wood", "table")
    ]
    return PlanState(0, 0, 1, "slow", "sequence", "", 0, {}, 5, items)


def test_set_changes_only_the_named_fields_and_the_author():
    executor, items = apply_edits(plan(), [{"op": "set", "name": "wood", "mode": "rl"}])
    assert executor == "sequence"
    assert (items[0].mode, items[0].author, items[0].goal) == ("rl", "operator", "get wood")
    assert items[1] == plan().items[1]


def test_add_move_remove_pin_and_executor_in_one_edit():
    executor, items = apply_edits(
        plan(),
        [
            {"op": "add", "name": "stone", "mode": "rl", "goal": "g", "done_when": "view.stone", "position": 0},
            {"op": "move", "name": "table", "position": 0},
            {"op": "remove", "name": "wood"},
            {"op": "pin", "name": "stone"},
            {"op": "executor", "value": "policy"},
        ],
    )
    assert executor == "policy"
    assert [(i.name, i.pinned) for i in items] == [("table", False), ("stone", True)]


@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        ([{"op": "set", "name": "gold", "mode": "rl"}], "no sub-action 'gold'; it has: wood, table"),
        ([{"op": "set", "name": "wood", "mode": "magic"}], "mode is wrong: input should be .code., .rl. or .option."),
        ([{"op": "set", "name": "wood", "max_steps": True}], "max_steps is wrong: input should be a valid integer"),
        ([{"op": "set", "name": "wood", "rename": "table"}], "already has"),
        ([{"op": "set", "name": "wood", "rename": "class"}], "is no name"),
        ([{"op": "set", "name": "wood", "goal": " "}], "'wood' needs a goal"),
        ([{"op": "add", "name": "x1", "mode": "rl"}], "needs goal, done_when"),
        ([{"op": "move", "name": "wood", "position": 9}], "from 0 to 1"),
        ([{"op": "explode", "name": "wood"}], "input tag .explode."),
        ([{"op": "remove", "name": "wood"}, {"op": "remove", "name": "table"}], "only sub-action"),
        ([{"op": "set", "name": "wood", "mode": "code"}, {"op": "unpin", "name": "table"}], ""),
    ],
)
def test_a_bad_edit_is_refused_with_a_sentence(edits, sentence):
    if sentence:
        with pytest.raises(BadEdit, match=sentence):
            apply_edits(plan(), edits)
    else:
        assert apply_edits(plan(), edits)[1][0].author == "operator"


@pytest.mark.parametrize(("field", "most"), [("goal", 800), ("reason", 600), ("done_when", 600), ("trigger", 600)])
def test_an_operator_writes_no_more_than_a_model_can_repeat(field: str, most: int):
    parse_edit({"op": "set", "name": "wood", field: "x" * most})
    with pytest.raises(BadEdit, match=f"{field} is wrong: string should have at most {most} characters"):
        parse_edit({"op": "set", "name": "wood", field: "x" * (most + 1)})


def test_an_operator_adds_no_more_sub_actions_than_a_model_can_repeat():
    add = {"op": "add", "mode": "rl", "goal": "g", "done_when": "True"}
    adds = [add | {"name": f"x{number}"} for number in range(MOST_ITEMS - 1)]
    assert len(apply_edits(plan(), adds[:-1])[1]) == MOST_ITEMS
    with pytest.raises(BadEdit, match="24 sub-actions already"):
        apply_edits(plan(), adds)
