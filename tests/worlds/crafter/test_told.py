"""What the world sheet tells in figures is what the published game does, and what a lost episode tells of its world is
what was there."""

import re

import numpy as np
import pytest
from crafter import objects

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.rollouts.evaluation import FollowPlan, evaluate
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.sheet import DANGERS
from rlgpt.training.worlds.crafter.survey import survey
from rlgpt.training.worlds.optional_parts import Surveys, offers, survey_of
from tests.worlds.corridor import CorridorWorld
from tests.worlds.crafter.stock import StockEnv

WAITS = "def wait(view):\n    while True:\n        view = yield 'noop'\n"
TOLD = dict(line.split(": ", 1) for line in DANGERS if ": " in line)


@pytest.fixture
def scene():
    """A world of grass with the player in its middle."""
    env = StockEnv(0)
    env.reset()
    world, player = env._world, env._player
    for thing in world.objects:
        if thing is not player:
            world.remove(thing)
    world._mat_map[...] = world._mat_ids["grass"]
    return world, player


def blows(thing, player):
    """How many kill it: without a sword, and with one of wood, stone, iron."""
    counts, health = [], thing.health
    for sword in ("", "wood_sword", "stone_sword", "iron_sword"):
        player.inventory |= {"wood_sword": 0, "stone_sword": 0, "iron_sword": 0} | ({sword: 1} if sword else {})
        thing.health, count = health, 0
        while thing.health > 0:
            player._do_object(thing)
            count += 1
        counts.append(count)
    return counts


def test_blows_that_kill(scene):
    world, player = scene
    zombie, skeleton = objects.Zombie(world, (40, 40), player), objects.Skeleton(world, (42, 40), player)
    bare, *swords = blows(zombie, player)
    wood, stone, iron = swords
    assert f"{bare} blows kill it, with a wood, stone or iron sword {wood}, {stone} or {iron}" in TOLD["zombie"]
    bare, *swords = blows(skeleton, player)
    assert f"{bare} blows, with a sword {swords[0]}, {swords[1]} or {swords[2]}" in TOLD["skeleton"]
    assert "A cow has 3 health (blows as for a skeleton)" in TOLD["meals"]
    assert blows(objects.Cow(world, (44, 40)), player) == [bare, *swords]


def test_a_zombie_hits_at_once_then_every_6_steps_and_not_diagonally(scene):
    world, player = scene
    x, y = player.pos
    zombie = objects.Zombie(world, (x + 1, y), player)
    world.add(zombie)
    hits = []
    for step in range(20):
        player.health = 9
        zombie.move = lambda direction: False  # it stays where it is
        zombie.update()
        if player.health < 9:
            hits.append(step)
            assert player.health == 7
    assert np.diff(hits).tolist() == [6] * (len(hits) - 1) and hits[0] == 0
    assert "hits at once for 2 and then every 6 steps" in TOLD["zombie"]
    world.move(zombie, np.array((x + 1, y + 1)))
    zombie.cooldown, player.health = 0, 9
    zombie.update()
    assert player.health == 9


def test_zombies_born_by_daylight():
    told = [float(number) for number in re.findall(r"below (\d\.\d+)", TOLD["zombie"])]
    assert len(told) == 3
    for count, edge in enumerate(told, 1):
        below, above = (int(3.5 - 3 * light) for light in (edge - 0.01, edge + 0.01))
        assert below == count and above == count - 1


def test_a_plant_is_ripe_after_300_steps_and_eaten_by_what_stands_beside_it(scene):
    world, _ = scene
    plant = objects.Plant(world, (40, 40))
    world.add(plant)
    steps = 0
    while not plant.ripe:
        plant.update()
        steps += 1
    assert steps == 301 and "ripe after 300 steps" in TOLD["plant"]
    world.add(objects.Cow(world, (41, 40)))
    plant.update()
    assert world[(40, 40)][1] is None
    env = StockEnv(0)
    assert 2 * max(env._view) == 18 and "18 cells away or more stands still" in DANGERS[0]


def test_an_arrow_flies_a_cell_a_step_and_turns_a_table_into_path(scene):
    world, _ = scene
    arrow = objects.Arrow(world, (40, 40), np.array((1, 0)))
    world.add(arrow)
    world[(43, 40)] = "table"
    for _ in range(3):
        arrow.update()
    assert tuple(arrow.pos) == (42, 40) and world[(43, 40)][0] == "path"
    assert objects.Arrow.walkable[-2:] == ["water", "lava"]


def test_a_lost_episode_tells_what_was_seen_and_what_there_was():
    env = registry.get("crafter").make("collect_diamond")
    env.reset(0)
    assert offers(env, Surveys)
    material, memory = env._simulation.material, env._simulation.memory
    diamonds = int((material == names.MATERIALS.index("diamond")).sum())
    told = survey_of(env)
    assert told.startswith("63 of 4096 cells seen") and f"diamond 0 of {diamonds}, the nearest" in told
    x, y = np.argwhere(material == names.MATERIALS.index("diamond"))[0]
    memory[y + names.REACH_Y, x + names.REACH_X] = material[x, y]
    assert f"diamond 1 of {diamonds}" in survey(material, memory)
    material[material == names.MATERIALS.index("diamond")] = names.MATERIALS.index("stone")
    assert "no diamond anywhere" in survey(material, memory)


def test_it_is_counted_in_how_many_lost_worlds_there_is_nothing_of_what_is_sought():
    world, seeds = registry.get("crafter"), list(range(40))
    env, without = world.make("collect_diamond"), 0
    for seed in seeds:
        env.reset(seed)
        without += not (env._simulation.material == names.MATERIALS.index("diamond")).any()
    plan = FollowPlan(world, [PlanItem("False", Action(source_hash(WAITS)))], {source_hash(WAITS): WAITS})
    host = open_host(world, lanes=4, mode="locked")
    env.reset(0)
    host.admit("action", WAITS, [[env.view(True)]])
    host.admit("done_when", "False", [[env.view(True)]])
    played = evaluate(world, "collect_diamond", plan, host, seeds, n_envs=4, variant="plan", horizon=3, traced=True)
    host.close()
    assert without and played.failures["lost_worlds"] == {"no diamond anywhere": without}


def test_a_world_that_hides_nothing_tells_nothing():
    env = CorridorWorld().make("take_key")
    env.reset(0)
    assert survey_of(env) == "" and not offers(env, Surveys)
