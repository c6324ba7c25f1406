"""The script book: admissible, and as good as its world sheet lets people expect."""

from types import SimpleNamespace

import pytest

from rlgpt.training.host.sandbox.admission import Vocabulary, check
from rlgpt.training.rollouts.script_bot import script_bot
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.crafter import host_side, names
from rlgpt.training.worlds.crafter.simulation import Simulation
from tests.worlds.crafter.play import plan_of, play, world
from tests.worlds.crafter.stock import StockEnv

FIRST = registry.get("rlgpt.training.worlds.crafter.world:make_first_try")
BOOK = {script.name: script for script in world().scripts("crafter_score")}
VOCABULARY = Vocabulary(frozenset(host_side.LIBRARY), frozenset(host_side.ATTRIBUTES))


def chain(name):
    """The scripts that lead to one, in order."""
    steps = []
    for need in BOOK[name].needs:
        steps += [step for step in chain(need) if step not in steps]
    return [*steps, name]


def success(task, script, episodes, rung=-1):
    env, plan = world().make(task), plan_of(world(), *chain(script), rung=rung)
    return sum(play(env, plan, episode_seed(0, "dev", index)) for index in range(episodes)) / episodes


@pytest.mark.parametrize("name", BOOK)
def test_every_version_is_admitted(name):
    script = BOOK[name]
    check("done_when", script.done_when, VOCABULARY)
    for source in script.sources:
        assert check("action", source, VOCABULARY).name == name
    assert list(script.sources) == sorted(script.sources, key=len)


def test_every_milestone_has_a_script():
    assert {milestone for script in BOOK.values() for milestone in script.gives} >= set(names.ACHIEVEMENTS)


def test_the_book_makes_a_stone_pickaxe():
    assert success("make_stone_pickaxe", "make_stone_pickaxe", 20) >= 0.9


def test_a_success_replays_in_stock():
    env, plan = world().make("make_stone_pickaxe"), plan_of(world(), *chain("make_stone_pickaxe"))
    for index in range(2):
        seed = episode_seed(0, "test", index)
        won, commands = play(env, plan, seed, keep=True)
        stock, ours = StockEnv(seed), Simulation()
        stock.reset()
        ours.reset(seed, 500, -1)
        for action in commands:
            stock.step(action)
        assert won == (stock._player.achievements["make_stone_pickaxe"] > 0)


def test_the_first_try_world_has_one_version_of_each_script_and_offers_one_action_more():
    *scripts, offered = FIRST.scripts("collect_diamond")
    for one, every in zip(scripts, BOOK.values(), strict=True):
        assert one.sources == every.sources[:1]
        assert (one.name, one.goal, one.done_when, one.gives) == (every.name, every.goal, every.done_when, every.gives)
        assert set(one.needs) - set(every.needs) <= {"collect_iron"}
    for task in world().tasks:
        sheet = FIRST.sheet(task)
        assert [script["name"] for script in sheet["scripts"]] == [*BOOK, offered.name]
        assert [script["name"] for script in sheet["scripts"] if "trigger" in script] == [offered.name]
        assert {len(script["sources"]) for script in sheet["scripts"]} == {1}
        assert sheet | {"scripts": 0} == world().sheet(task) | {"scripts": 0}


def test_a_plan_of_first_tries_makes_no_sword_and_places_its_furnace_once_iron_is_held():
    names = [step.name for step in script_bot(FIRST, "collect_diamond")]
    assert not any(name.endswith("_sword") for name in names)
    assert names[-5:] == ["collect_iron", "collect_coal", "place_furnace", "make_iron_pickaxe", "collect_diamond"]


def test_a_workshop_is_set_up_only_once_the_plan_holds_all_that_it_makes_there():
    workshop = FIRST.scripts("collect_diamond")[-1]
    held = {"iron": 1, "coal": 1, "wood": 3}
    assert eval(workshop.trigger, {"view": SimpleNamespace(inventory=held, achieved=())})
    for lacking in held:
        view = SimpleNamespace(inventory=held | {lacking: 0}, achieved=())
        assert not eval(workshop.trigger, {"view": view})


def test_first_tries_come_to_the_diamond_only_where_no_step_of_their_plan_waits_for_ever():
    env, names = world().make("collect_diamond"), [step.name for step in script_bot(FIRST, "collect_diamond")]
    seeds = [episode_seed(0, "dev", index) for index in range(10)]
    assert any(play(env, plan_of(FIRST, *names), seed) for seed in seeds)
    place = names.index("make_stone_pickaxe") + 1
    with_sword = plan_of(FIRST, *names[:place], "make_stone_sword", *names[place:])
    assert not any(play(env, with_sword, seed) for seed in seeds)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("task", "least"),
    [
        ("make_stone_pickaxe", 0.95),
        ("collect_iron", 0.8),
        ("make_iron_pickaxe", 0.7),
        ("collect_diamond", 0.4),
        ("defeat_skeleton", 0.8),
        ("defeat_zombie", 0.9),
        ("wake_up", 0.8),
        ("survive_night", 0.93),
        ("eat_plant", 0.65),
    ],
)
def test_a_hundred_episodes(task, least):
    rate = success(task, task, 100)
    print(f"{task}: {rate:.2f}")
    assert rate >= least
