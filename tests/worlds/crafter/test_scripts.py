"""The script book: admissible, and as good as its world sheet lets people expect."""

import pytest

from rlgpt.training.host.sandbox.admission import Vocabulary, check
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.crafter import host_side, names
from rlgpt.training.worlds.crafter.simulation import Simulation
from tests.worlds.crafter.play import plan_of, play, world
from tests.worlds.crafter.stock import StockEnv

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
        ("survive_night", 0.8),
        ("eat_plant", 0.65),
    ],
)
def test_a_hundred_episodes(task, least):
    rate = success(task, task, 100)
    print(f"{task}: {rate:.2f}")
    assert rate >= least
