"""The script book: every source may run in the action host, and the code does what it was written for."""

import pytest

from tests.worlds.kitchen.test_world import MISSING

pytest.importorskip("mujoco", reason=MISSING)
pytest.importorskip("gymnasium_robotics", reason=MISSING)

from rlgpt.agents.rules.judging import compare
from rlgpt.training.host.sandbox.admission import Vocabulary
from rlgpt.training.host.sandbox.admission import check as admit
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.kitchen.host_side import ATTRIBUTES, LIBRARY, decoder, describe
from tests.worlds.kitchen.play import LAST, plan_of, play

WORLD = registry.get("kitchen")
SCRIPTS = {script.name: script for task in WORLD.tasks for script in WORLD.scripts(task)}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_version_and_predicate_is_admitted(name):
    words = Vocabulary(frozenset(LIBRARY), frozenset(ATTRIBUTES))
    for source in SCRIPTS[name].sources:
        assert admit("action", source, words).name == name
    admit("done_when", SCRIPTS[name].done_when, words)


@pytest.mark.parametrize("task", ["slide_cabinet", "light_switch", "top_burner", "kettle"])
def test_first_versions_can_win_where_handles_are_told_right(task):
    env = WORLD.make(task)
    assert any(play(env, 700_000 + seed, plan_of(task, 1)).success for seed in range(6))


@pytest.mark.parametrize("task", ["hinge_cabinet", "microwave"])
def test_doors_need_their_later_versions(task):
    env = WORLD.make(task)
    assert not any(play(env, 700_000 + seed, plan_of(task, 1)).success for seed in range(3))
    assert any(play(env, 700_000 + seed, plan_of(task, LAST)).success for seed in range(6))


def test_a_plan_that_is_cut_every_few_env_steps_still_wins():
    env = WORLD.make("microwave")
    assert any(play(env, 700_000 + seed, plan_of("microwave"), max_option_steps=8).success for seed in range(4))


def test_each_object_of_the_chain_is_in_its_plan():
    names = [script.name for script in WORLD.scripts("kitchen_complete")]
    assert names == [
        "grasp_microwave", "open_microwave", "grasp_kettle", "carry_kettle", "reach_light_switch", "push_light_switch",
        "reach_slide_cabinet", "push_slide_cabinet",
    ]  # fmt: skip
    assert "kitchen_complete" in WORLD.scripts("kitchen_complete")[-1].gives


def test_what_a_critic_reads_of_a_won_episode_says_that_its_sub_actions_did_their_work():
    for task in ("microwave", "kettle", "light_switch", "top_burner"):
        env = WORLD.make(task)
        seed = next(seed for seed in range(700_000, 700_010) if play(env, seed, plan_of(task)).success)
        after = describe(decoder().view(env.view(True)))
        env.reset(seed)
        before = describe(decoder().view(env.view(True)))
        for script in WORLD.scripts(task):
            spoken = f"{script.name} {script.goal}"
            assert compare(spoken, {"before": before, "after": after}).success
            assert not compare(spoken, {"before": before, "after": before}).success


def test_the_first_try_world_has_one_version_of_each_script_and_is_else_the_same():
    first = registry.get("rlgpt.training.worlds.kitchen.world:make_first_try")
    for task in WORLD.tasks:
        for one, every in zip(first.scripts(task), WORLD.scripts(task), strict=True):
            assert one.sources == every.sources[:1]
            assert (one.name, one.done_when, one.needs) == (every.name, every.done_when, every.needs)
        sheet = first.sheet(task)
        assert [len(script["sources"]) for script in sheet["scripts"]] == [1] * len(sheet["scripts"])
        assert sheet | {"scripts": 0} == WORLD.sheet(task) | {"scripts": 0}
