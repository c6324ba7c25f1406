"""The rules equal stock Crafter's, step by step: map, objects, inventory, needs, chunks, random stream,
reward and end; from fresh worlds, through the script book, from saved and from late-game states."""

import numpy as np
import pytest

from rlgpt.training.worlds.crafter.simulation import Simulation
from tests.worlds.crafter.play import plan_of, play, world
from tests.worlds.crafter.scenes import late_game, stock_like
from tests.worlds.crafter.stock import StockEnv, picture_of_ours, picture_of_stock

DIAMOND = (
    "collect_wood", "place_table", "make_wood_pickaxe", "collect_stone", "make_stone_pickaxe", "make_stone_sword",
    "collect_coal", "collect_iron", "make_iron_pickaxe", "collect_diamond",
)  # fmt: skip


def same(stock, ours, moment):
    left, right = picture_of_stock(stock), picture_of_ours(ours)
    assert left == right, f"{moment}: {[name for name in left if left[name] != right[name]]} differ"


def step_both(stock, ours, actions, moment):
    """True while the episode lasts."""
    for number, action in enumerate(actions):
        _, reward, done, _ = stock.step(int(action))
        assert (reward, bool(done)) == ours.step(int(action)), (moment, number)
        same(stock, ours, (moment, number, int(action)))
        if done:
            return False
    return True


def fresh(seed):
    stock, ours = StockEnv(seed), Simulation()
    stock.reset()
    ours.reset(seed, 10_000, -1)
    same(stock, ours, (seed, "reset"))
    return stock, ours


def random_actions(seed, count):
    """Half uniform, half with a taste for a few actions."""
    draw = np.random.RandomState(seed)
    weights = draw.dirichlet(np.full(17, 0.3))
    return np.where(draw.rand(count) < 0.5, draw.randint(0, 17, count), draw.choice(17, count, p=weights))


def by_the_book(seed, steps):
    env = world().make("crafter_score")
    env.task = type(env.task)(**{**vars(env.task), "horizon": steps})
    _, commands = play(env, plan_of(world(), *DIAMOND), seed, keep=True)
    return commands[:steps]


@pytest.mark.parametrize("seed", range(4))
def test_random_play_is_stock(seed):
    step_both(*fresh(seed), random_actions(seed, 250), seed)


@pytest.mark.parametrize("seed", [11, 12])
def test_the_script_book_is_stock_then_random_play(seed):
    actions = by_the_book(seed, 250)
    step_both(*fresh(seed), [*actions, *random_actions(seed, 60)], seed)


@pytest.mark.parametrize("seed", range(40))
def test_late_games_are_stock(seed):
    ours = late_game(seed)
    step_both(stock_like(ours), ours, random_actions(seed, 40), seed)


def test_a_restored_world_goes_on_as_stock_does():
    stock, first = fresh(21)
    assert step_both(stock, first, random_actions(21, 60), "before")
    restored = Simulation()
    restored.reset(1, 100, -1)
    restored.restore(first.save())
    step_both(stock, restored, random_actions(22, 120), "after")


def test_a_wrong_rule_would_be_seen():
    stock, ours = fresh(5)
    ours.state[0] ^= 1 << 7
    ours.material[32, 30] = 6
    with pytest.raises(AssertionError):
        step_both(stock, ours, random_actions(5, 20), "changed")


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_a_thousand_steps_are_stock(seed):
    """Odd seeds at random, even ones by the book and then from late-game states."""
    if seed % 2:
        step_both(*fresh(seed), random_actions(seed, 1000), seed)
        return
    left = 1000
    actions = by_the_book(seed, 500)
    step_both(*fresh(seed), actions, seed)
    left -= len(actions)
    scene = seed * 100
    while left > 0:
        ours, count = late_game(scene), min(left, 100)
        step_both(stock_like(ours), ours, random_actions(scene, count), scene)
        left, scene = left - count, scene + 1
