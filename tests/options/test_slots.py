"""Which coded action gets which place in the action space."""

from __future__ import annotations

import numpy as np
import pytest

from rlgpt.training.host.api import FOLLOW_PLAN, Action, PlanItem, source_hash
from rlgpt.training.options.probe import find_similar, walk_views
from rlgpt.training.options.slots import ActionSpaceError, K, build_slots, noop_of, primitive_mask
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.setup import build_setup
from tests.options.toys import BACK, GET_KEY, NOTHING, USE, WALK, ChangedWorld, code, configuration, host_of

PLAN = (PlanItem("view.key", Action(source_hash(GET_KEY))),)
GO = "def go(view, where, far):\n    view = yield where\n"


def test_a_slot_is_a_source_with_one_combination_of_arguments() -> None:
    go = code(GO, arguments={"where": ("left", "right"), "far": (1, 2, 3)})
    slots, actions = build_slots([go], [], max_option_steps=9, follow_plan=False)
    names = [slot.name for slot in slots if slot]
    assert names[0] == "go(left, 1)" and len(names) == 6 == len(set(names))
    assert actions[5] == Action(go.source_hash, (("where", "right"), ("far", 3)))
    assert [slot.program for slot in slots if slot] == list(range(6))
    assert {slot.max_option_steps for slot in slots if slot} == {9}


def test_equal_syntax_trees_are_one_slot() -> None:
    twin = code("def walk_too(view):\n    pass\n", tree_hash="t")
    options = [code(WALK, tree_hash="t"), twin, code(USE)]
    slots, actions = build_slots(options, [], max_option_steps=16, follow_plan=False)
    assert [slot.name for slot in slots if slot] == ["walk", "use_it"]
    assert len(actions) == 2


def test_what_is_still_offered_keeps_its_slot_and_a_rewritten_source_takes_that_of_the_earlier_one() -> None:
    first, _ = build_slots([code(WALK), code(USE), code(BACK)], PLAN, max_option_steps=16, follow_plan=True)
    previous = [{"slot": i, "key": slot.key, "name": slot.name} for i, slot in enumerate(first) if slot]
    rewritten = code(WALK.replace("range(3)", "range(4)"))
    options = [code(NOTHING), code(BACK), code(USE), rewritten]
    plan = (*PLAN, PlanItem("view.opened", PLAN[0].action))
    second, actions = build_slots(options, plan, max_option_steps=16, follow_plan=True, previous=previous)
    assert [slot and slot.name for slot in second[:5]] == ["follow_plan", "walk", "use_it", "back", "nothing"]
    assert first[0] and second[0] and second[0].key != first[0].key
    first, second = first[1:], second[1:]
    assert second[0] and second[0].source_hash == rewritten.source_hash != first[0].source_hash  # type: ignore[union-attr]
    assert actions[second[2].program].source_hash == source_hash(BACK)  # type: ignore[union-attr]


def test_follow_plan_is_a_slot_of_its_own_that_changes_with_the_plan() -> None:
    slots, _ = build_slots([], PLAN, max_option_steps=16, follow_plan=True)
    other, _ = build_slots([], (PlanItem("view.opened", PLAN[0].action),), max_option_steps=16, follow_plan=True)
    assert slots[0] and slots[0].name == "follow_plan" and slots[0].program == FOLLOW_PLAN
    assert other[0] and other[0].key != slots[0].key
    assert not any(build_slots([], PLAN, max_option_steps=16, follow_plan=False)[0])


def test_more_coded_actions_than_slots_are_refused() -> None:
    many = [code(f"def a{i}(view):\n    yield {i}\n") for i in range(K + 1)]
    with pytest.raises(ActionSpaceError, match="25 coded actions are offered, but a policy has 24 slots"):
        build_slots(many, [], max_option_steps=16, follow_plan=False)


def test_free_slots_and_unlisted_primitives_are_masked() -> None:
    world = ChangedWorld()
    config = configuration(primitives=["right"], options=["walk"])
    space = build_setup(world, "take_key", config, [code(WALK), code(USE)], [], {}, []).space
    assert space.static_mask().nonzero()[0].tolist() == [1, 3]
    assert space.without_options().static_mask().nonzero()[0].tolist() == [1]
    assert space.without_primitives().static_mask().nonzero()[0].tolist() == [3]


def test_coded_actions_extend_the_first_of_several_heads() -> None:
    space = build_setup(
        ChangedWorld(two_heads=True), "take_key", configuration(primitives=["left"], options=["walk"]), [code(WALK)],
        [], {}, [],
    ).space  # fmt: skip
    assert space.sizes == (3 + K, 2)
    assert space.static_mask().nonzero()[0].tolist() == [1, 3, 3 + K, 4 + K]


def test_options_with_equal_yields_on_the_probed_states_are_similar() -> None:
    world = ChangedWorld()
    twin = code('def step_right(view):\n    for _ in range(3):\n        yield "right"\n')
    options = [code(WALK), code(USE), code(NOTHING), twin, code(NOTHING.replace("nothing", "idle"))]
    views = walk_views(world, "take_coin", 3)
    found = find_similar(host_of(world), options, views)
    keys = {slot.key: slot.name for slot in build_slots(options, [], max_option_steps=1, follow_plan=False)[0] if slot}
    assert len(views) == 64 and len(set(views)) > 5
    assert {keys[key]: other for key, other in found.items()} == {"step_right": "walk"}


def test_similar_options_share_one_prior_in_a_run() -> None:
    world = ChangedWorld()
    twin = code('def step_right(view):\n    for _ in range(3):\n        yield "right"\n')
    config = configuration(options=["walk", "use_it", "step_right"], option_prior=0.4)
    options = [code(WALK), code(USE), twin]
    start = train(world, "take_coin", config, options, host_of(world), seed=1, device="cpu", env_steps=0).start
    assert [(s["name"], s["prior"], s["similar"]) for s in start.slots] == [
        ("walk", 0.1, ""), ("use_it", 0.2, ""), ("step_right", 0.1, "walk")
    ]  # fmt: skip


def test_the_noop_is_the_primitive_named_so_or_the_first() -> None:
    assert noop_of(ChangedWorld(two_heads=True)) == 0
    assert noop_of(ChangedWorld()) == 0


def test_an_unknown_primitive_or_option_and_an_empty_action_set_are_sentences() -> None:
    world = ChangedWorld()
    with pytest.raises(ActionSpaceError, match="no primitive 'fly'"):
        primitive_mask(world, ["fly"])
    with pytest.raises(ActionSpaceError, match="names the option 'walk', but no such coded action is accepted"):
        build_setup(world, "take_key", configuration(options=["walk"]), [], [], {}, [])
    with pytest.raises(ActionSpaceError, match="The action set is empty"):
        build_setup(world, "take_key", configuration(primitives=[]), [], [], {}, [])
    assert np.array_equal(primitive_mask(world, ["use"]), [False, False, True])
