"""What coded actions see and may call: the truth, cheaply, and nothing to break."""

import heapq
import time

import pytest

from rlgpt.training.worlds.crafter import host_side, layout, library, names
from rlgpt.training.worlds.crafter.library import LIBRARY
from tests.worlds.crafter.play import world
from tests.worlds.crafter.scenes import late_game
from tests.worlds.crafter.test_env import env_in, window
from tests.worlds.crafter.test_rules import random_actions

WALKABLE = ("grass", "sand", "path")


def view_of(env):
    return host_side.decoder().view(env.view(True))


def wander(seed, steps=80):
    """An env some steps into a random episode with full pockets, and a decoder that followed it."""
    env = world().make("crafter_score")
    env.reset(seed)
    env._simulation.state[layout.ITEM + 4 : layout.ITEM + 16] = 5
    env._simulation.look()
    decoder = host_side.decoder()
    view = decoder.view(env.view(True))
    for action in random_actions(seed, steps):
        if env.step((int(action),)).terminated:
            break
        view = decoder.view(env.view(False))
    return env, view


@pytest.mark.parametrize("seed", range(6))
def test_a_view_tells_the_truth(seed):
    env = env_in(seed)
    view, cells, state = view_of(env), window(env), env._simulation.state
    for cell, name in enumerate(cells):
        dx, dy = cell % 9 - 4, cell // 9 - 3
        if (dx, dy) != (0, 0):
            assert view.at(dx, dy) == name
    assert sorted(name for name, _, _ in view.objects) == sorted(
        name for name in cells if name in names.OBJECTS and name != "nothing"
    )
    items = dict(zip(names.ITEMS, state[layout.ITEM : layout.ITEM + 16].tolist(), strict=True))
    assert {"health": view.health, "food": view.food, "drink": view.drink, "energy": view.energy} == {
        name: items[name] for name in names.VITALS
    }
    assert dict(view.inventory) == {name: items[name] for name in names.INVENTORY}
    assert view.achieved == env.milestones() - {"survive_night"}
    assert view.steps == env.steps and view.steps_left == 10_000 - env.steps
    assert view.sleeping == bool(state[layout.SLEEPING])


@pytest.mark.parametrize("seed", range(5))
def test_changes_add_up_to_the_whole(seed):
    env, followed = wander(seed)
    whole = view_of(env)
    for dx in range(-40, 41):
        for dy in range(-40, 41):
            assert followed.material(dx, dy) == whole.material(dx, dy)
    x, y = whole.position
    memory = env._simulation.memory
    for dx, dy in ((-9, 0), (7, 7), (0, -8), (12, 3)):
        inside = 0 <= x + dx < 64 and 0 <= y + dy < 64
        code = memory[y + dy + 3, x + dx + 4] if inside else 0
        assert whole.at(dx, dy) == names.REMEMBERED[code]
    assert all(whole.known(name) == (memory == code).sum() for code, name in enumerate(names.REMEMBERED) if code)


def test_a_view_stays_as_it_was():
    env = world().make("collect_wood")
    env.reset(1)
    decoder = host_side.decoder()
    first = decoder.view(env.view(True))
    before = (first.position, [first.material(dx, 0) for dx in range(-20, 20)])
    for action in random_actions(1, 60):
        env.step((int(action),))
        decoder.view(env.view(False))
    assert (first.position, [first.material(dx, 0) for dx in range(-20, 20)]) == before


def test_the_memory_of_a_view_is_the_same_whenever_it_is_asked_for():
    env = world().make("crafter_score")
    env.reset(3)
    decoder = host_side.decoder()
    views, wholes = [decoder.view(env.view(True))], [view_of(env)]
    for step in range(300):
        env._simulation.state[layout.ITEM : layout.ITEM + 4] = 9  # it shall live
        assert not env.step((1 + step // 7 % 4,)).terminated
        views.append(decoder.view(env.view(False)))
        wholes.append(view_of(env))
    middle = len(views) // 2
    for at in (middle, len(views) - 1, 1, middle + 1, 0, middle - 1):
        assert all(views[at].known(name) == wholes[at].known(name) for name in names.REMEMBERED[1:])


def cheapest(env, view, wanted, dig):
    """Dijkstra on the map memory: env steps until next to the nearest wanted cell."""
    tools = {"stone": "wood_pickaxe", "coal": "wood_pickaxe", "iron": "stone_pickaxe", "diamond": "iron_pickaxe"}
    memory = env._simulation.memory
    occupied = {(view.position[0] + dx, view.position[1] + dy) for _, dx, dy in view.objects}
    live = {(view.position[0] + dx, view.position[1] + dy) for name, dx, dy in view.objects if name in wanted}

    def name_at(x, y):
        return names.REMEMBERED[memory[y + 3, x + 4]] if 0 <= x < 64 and 0 <= y < 64 else "unknown"

    def is_target(x, y):
        return (x, y) in live or ((x, y) not in occupied and name_at(x, y) in wanted)

    queue, done = [(0, view.position)], set()
    while queue:
        cost, (x, y) = heapq.heappop(queue)
        if (x, y) in done:
            continue
        done.add((x, y))
        around = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
        if any(is_target(*cell) for cell in around):
            return cost
        for cell in around:
            name = name_at(*cell)
            if name in WALKABLE and cell not in occupied:
                heapq.heappush(queue, (cost + 1, cell))
            elif dig and name in tools and view.inventory[tools[name]]:
                heapq.heappush(queue, (cost + 3, cell))
    return None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("wanted", [("tree",), ("water", "coal"), ("iron",), ("grass",), ("cow",)])
def test_ways_are_shortest(seed, wanted):
    env, view = wander(seed, 60)
    for dig in (False, True):
        assert library.steps_to(view, *wanted, dig=dig) == cheapest(env, view, wanted, dig)


def test_following_a_way_arrives_in_as_many_steps():
    """Without creatures in the way, `approach` takes exactly the steps that `steps_to` says."""
    arrived = 0
    for seed in range(12):
        env, view = wander(seed, 40)
        simulation = env._simulation
        simulation.objects[1:, layout.KIND] = layout.NOBODY
        simulation.occupant[simulation.occupant > 1] = 0
        simulation.state[layout.SLEEPING] = 0
        simulation.state[layout.ITEM : layout.ITEM + 4] = 9
        simulation.state[layout.STEP] = 1
        simulation.look()
        decoder = host_side.decoder()
        view = decoder.view(env.view(True))
        distance = library.steps_to(view, "tree", dig=True)
        if distance is None or distance > 30:
            continue
        for _ in range(distance):
            env.step(host_side.encode(library.approach(view, "tree", dig=True)))
            view = decoder.view(env.view(False))
        assert library.steps_to(view, "tree", dig=True) == 0
        if view.front != "tree":
            env.step(host_side.encode(library.approach(view, "tree", dig=True)))
            view = decoder.view(env.view(False))
        assert view.front == "tree"
        arrived += 1
    assert arrived >= 5


def test_a_single_walkable_cell_is_faced_not_trodden_on():
    env = world().make("crafter_score")
    env.reset(0)
    simulation = env._simulation
    simulation.material[20:45, 20:45] = layout.STONE
    simulation.material[28:37, 32] = layout.PATH
    simulation.material[30, 32] = layout.GRASS
    simulation.objects[1:, layout.KIND] = layout.NOBODY
    simulation.occupant[simulation.occupant > 1] = 0
    simulation.look()
    decoder = host_side.decoder()
    view = decoder.view(env.view(True))
    for _ in range(4):
        if view.front != "grass":
            env.step(host_side.encode(library.approach(view, "grass")))
            view = decoder.view(env.view(False))
    assert view.front == "grass"


def test_a_shelter_closes():
    closed = 0
    for seed in range(12):
        env = world().make("crafter_score")
        env.reset(seed)
        simulation = env._simulation
        simulation.material[20:45, 20:45] = layout.STONE
        simulation.material[28:34, 28:34] = layout.PATH
        simulation.objects[1:, layout.KIND] = layout.NOBODY
        simulation.occupant[simulation.occupant > 1] = 0
        simulation.state[layout.ITEM + 6] = 3
        simulation.state[layout.ITEM + 10] = 1
        simulation.look()
        decoder = host_side.decoder()
        view = decoder.view(env.view(True))
        for _ in range(25):
            step = library.shelter(view)
            env.step(host_side.encode(step))
            view = decoder.view(env.view(False))
        closed += library.enclosed(view) and library.shelter(view) == "noop"
    assert closed == 12


def test_nothing_in_a_view_can_be_changed():
    view = view_of(env_in(3))
    for name in host_side.ATTRIBUTES:
        with pytest.raises((AttributeError, TypeError)):
            setattr(view, name, 1)
    with pytest.raises(TypeError):
        view.inventory["wood"] = 9
    with pytest.raises(TypeError):
        LIBRARY["go"] = None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda view: library.approach(view, "gold"), "no material or object"),
        (lambda view: library.approach(view), "at least one"),
        (lambda view: library.approach("view", "tree"), "must be the view"),
        (lambda view: library.go(view, 1.5, 0), "two ints"),
        (lambda view: library.enclosed(view, 10**9), "from 1 to 64"),
        (lambda view: library.shelter(view, 10**9), "from 1 to 64"),
        (lambda view: library.approach(view, "tree", avoid=["grass"]), "tuple of"),
        (lambda view: view.at(0.5, 0), "two ints"),
        (lambda view: view.known("zombie"), "takes one of"),
    ],
)
def test_a_wrong_argument_is_one_sentence(call, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        call(view_of(env_in(3)))


def test_only_exact_names_are_commands():
    class Name(str):
        """Not exactly a str."""

    assert [host_side.encode(name) for name in names.ACTIONS] == [(index,) for index in range(17)]
    for bad in (None, 3, True, "jump", Name("noop"), b"noop", ("noop",), 10**100):
        with pytest.raises(ValueError, match="primitive"):
            host_side.encode(bad)


def test_a_damaged_view_is_refused():
    packed = env_in(3).view(True)
    for damaged in (packed[:-1], packed[:10], b"", b"\0" + packed[1:]):
        with pytest.raises(ValueError, match="packed view"):
            host_side.decoder().view(damaged)


def test_every_call_is_bounded():
    """On a fully known map of open ground, the worst case, no call takes long."""
    simulation = late_game(1)
    simulation.material[:] = layout.GRASS
    simulation.material[0, 0] = layout.DIAMOND
    env = world().make("crafter_score")
    env.restore(simulation.save())
    for x in range(4, 64, 9):
        for y in range(3, 64, 7):
            env._simulation.objects[0, [layout.X, layout.Y]] = x, y
            env._simulation.look()
    begin = time.process_time()
    view = view_of(env)
    for name in ("nearest", "approach", "steps_to", "explore", "scout"):
        for _ in range(10):
            LIBRARY[name](view, "diamond")
    assert time.process_time() - begin < 1
