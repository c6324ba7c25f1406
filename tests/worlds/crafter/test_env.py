"""The env on its tasks: success, milestones, mask, senses, frames, pixels, saving."""

import hashlib

import numpy as np
import pytest

from rlgpt.training.worlds.crafter import drawing, fingerprint, layout, names, senses
from rlgpt.training.worlds.crafter.features import FEATURES
from rlgpt.training.worlds.crafter.frame import SIZE
from rlgpt.training.worlds.crafter.render import Painter
from tests.worlds.crafter.play import world
from tests.worlds.crafter.scenes import late_game, stock_like
from tests.worlds.crafter.test_rules import random_actions


def env_in(seed, task="crafter_score", **options):
    """An env in a late-game state."""
    env = world().make(task, **options)
    env.restore(late_game(seed).save())
    return env


def window(env):
    """What lies in the window, read from the arrays."""
    simulation = env._simulation
    x0, y0 = simulation.objects[0, [layout.X, layout.Y]]
    rows = []
    for dy in range(-3, 4):
        for dx in range(-4, 5):
            x, y = x0 + dx, y0 + dy
            if not (0 <= x < 64 and 0 <= y < 64):
                rows.append("unknown")
                continue
            row = simulation.occupant[x, y] - 1
            name = names.MATERIALS[simulation.material[x, y]]
            if row > 0:
                kind = simulation.objects[row, layout.KIND]
                ripe = simulation.objects[row, layout.TIMER] > 300
                name = {
                    layout.COW: "cow",
                    layout.ZOMBIE: "zombie",
                    layout.SKELETON: "skeleton",
                    layout.ARROW: "arrow_" + names.FACINGS[simulation.objects[row, layout.HEADING]],
                    layout.PLANT: "ripe_plant" if ripe else "sapling",
                }[kind]
            rows.append(name)
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_features_frame_and_distance_tell_the_same_truth(seed):
    env = env_in(seed)
    cells = window(env)
    seen = env.observe()
    assert [names.CATEGORIES[int(code)] for code in seen[:63]] == cells
    frame = drawing.read(env.frame())
    assert drawing.cell_names(frame) == cells and len(env.frame()) == SIZE < 200
    state = env._simulation.state
    assert list(frame.items) == state[layout.ITEM : layout.ITEM + 16].tolist()
    for name in ("cow", "zombie", "water", "table", "arrow"):
        found = [
            abs(cell % 9 - 4) + abs(cell // 9 - 3) for cell, what in enumerate(cells) if what.split("_")[0] == name
        ]
        assert env.distance(name) == (min(found) if found else None)


@pytest.mark.parametrize("seed", range(6))
def test_remembered_points_to_the_nearest_cell(seed):
    env = env_in(seed, features=["remembered"])
    for action in random_actions(seed, 30):
        if env.step((int(action),)).terminated:
            break
    seen = env.observe().reshape(13, 3)
    simulation = env._simulation
    x0, y0 = (int(v) for v in simulation.objects[0, [layout.X, layout.Y]])
    for code in range(1, 14):
        rows, columns = np.nonzero(simulation.memory == code)
        if not len(rows):
            assert (seen[code - 1] == 0).all()
            continue
        dx, dy = columns - names.REACH_X - x0, rows - names.REACH_Y - y0
        distance = (abs(dx) + abs(dy)).min()
        assert seen[code - 1, 2] == pytest.approx(8 / (8 + distance))
        found = seen[code - 1, :2] * max(distance, 1)
        assert any(np.allclose(found, offset) for offset in zip(dx, dy, strict=True))


def test_memory_holds_only_what_was_in_the_window():
    env = world().make("crafter_score")
    env.reset(3)
    seen = np.zeros((70, 72), bool)
    for action in [0, *random_actions(4, 120)]:
        env.step((int(action),))
        x, y = env._simulation.objects[0, [layout.X, layout.Y]]
        seen[y : y + 7, x : x + 9] = True
    assert not env._simulation.memory[~seen].any()
    assert env._simulation.memory[35, 36] and not seen.all()


@pytest.mark.parametrize("seed", range(12))
def test_a_masked_action_does_nothing(seed):
    """Apart from time passing: inventory and map end as after a noop."""
    env = env_in(seed)
    saved, mask = env.save(), env.action_masks().copy()
    assert mask[0]
    outcomes = []
    for action in range(17):
        env.restore(saved)
        env.step((action,))
        state, material = env._simulation.state, env._simulation.material
        outcomes.append((state[layout.ITEM + 4 : layout.ITEM + 16].tolist(), material.tobytes()))
    wasted = [action for action in range(17) if not mask[action] and outcomes[action] != outcomes[0]]
    assert not wasted


def test_a_goal_ends_the_episode_and_a_score_does_not():
    saved = late_game(1)
    saved.state[layout.ITEM + 5] = 9
    saved.state[layout.SLEEPING] = 0
    saved.state[layout.ACHIEVED_TIMES : layout.ACHIEVED_TIMES + 22] = 0
    saved.material[saved.objects[0, layout.X], saved.objects[0, layout.Y] + 1] = layout.TABLE
    for task, ends in (("make_wood_pickaxe", True), ("crafter_score", False)):
        env = world().make(task)
        env.restore(saved.save())
        env._simulation.state[layout.STEP] = env.steps = 5
        result = env.step((names.ACTIONS.index("make_wood_pickaxe"),))
        assert (result.terminated, env.succeeded()) == (ends, ends)
        assert "make_wood_pickaxe" in env.milestones() and result.reward >= 1 - 0.7


def test_the_night_is_survived_alive_only():
    env = world().make("survive_night")
    env.reset(0)
    over = False
    while not over:
        over = env.step((0,)).terminated
    alive = bool(env._simulation.state[layout.ITEM])
    assert env.succeeded() == (alive and env.steps == 300) == ("survive_night" in env.milestones())


def test_lost_health_and_new_neighbours_interrupt():
    env = env_in(4)
    rang = []
    for action in random_actions(4, 60):
        health = env._simulation.state[layout.ITEM]
        enemies = adjacent(env)
        if env.step((int(action),)).terminated:
            break
        lost = env._simulation.state[layout.ITEM] < health
        rang.append(env.interrupt())
        assert rang[-1] == bool(lost or (adjacent(env) and not enemies))
    assert any(rang) and not all(rang)


def adjacent(env):
    cells = window(env)
    return any(cells[31 + step].split("_")[0] in ("zombie", "skeleton", "arrow") for step in (-9, -1, 1, 9))


@pytest.mark.parametrize("asleep", [0, 1])
@pytest.mark.parametrize("step", [0, 30, 165, 180, 210, 240, 285])
@pytest.mark.parametrize("seed", range(3))
def test_pixels_are_stocks_and_leave_the_game_alone(seed, step, asleep):
    ours = late_game(seed)
    ours.state[layout.STEP], ours.state[layout.SLEEPING] = step, asleep
    ours.look()
    stock, before = stock_like(ours), ours.save()
    stock._update_time()
    painter = Painter(ours)
    stock._world.random = np.random.RandomState(seed)
    assert (painter.paint(np.random.RandomState(seed)) == stock.render()).all()
    assert ours.save() == before


def test_saving_is_exact_and_refuses_damage():
    env = env_in(2)
    saved = env.save()
    other = world().make("crafter_score")
    other.restore(saved)
    assert other.save() == saved
    for damaged in (saved[:-1], b"x" + saved[1:], saved[:40] + b"\xff" * 8000 + saved[8040:]):
        with pytest.raises(ValueError, match="saved Crafter world"):
            other.restore(damaged)


@pytest.mark.parametrize(
    ("part", "place", "value"),
    [
        ("senses", names.AT_MATERIALS + 7, 13), ("senses", names.AT_OBJECTS, 10), ("senses", names.AT_FACING, 4),
        ("state", layout.ITEM + 3, 10), ("state", layout.ITEM, -1),
        ("state", layout.LEFT, -1), ("state", layout.RIGHT, names.MEMORY_WIDTH),
        ("state", layout.TOP, -1), ("state", layout.BOTTOM, names.MEMORY_HEIGHT),
        ("state", layout.CHUNK_ORDER, 36), ("state", layout.CHUNK_ORDER, -1),
        ("state", layout.CHUNKS, 0), ("state", layout.CHUNKS, 37), ("state", layout.CHUNKS, 10**9),
        ("state", slice(layout.CHUNK_USED, layout.CHUNK_USED + 36), 0),
        ("state", layout.ROWS, 1), ("state", layout.ROWS, layout.CAPACITY + 1),
    ],
)  # fmt: skip
def test_a_saved_world_with_an_index_that_there_is_not_is_refused(part, place, value):
    env = env_in(2)
    rows = env._simulation.state[layout.ROWS]
    saved = env.save()
    getattr(env._simulation, part)[place] = value
    if (part, place) == ("state", layout.ROWS):  # the number of rows that is saved beside it stays as it was
        value, at = np.int64(value).tobytes(), 12 + 8 * layout.ROWS
        assert saved[at : at + 8] == np.int64(rows).tobytes()
        damaged = saved[:at] + value + saved[at + 8 :]
    else:
        damaged = env.save()
    with pytest.raises(ValueError, match="saved Crafter world is damaged"):
        world().make("crafter_score", pixels=True).restore(damaged)


def test_the_picture_of_a_night_is_a_function_of_the_worlds_state():
    env = world().make("crafter_score", pixels=True)
    env.reset(4)
    for _ in range(210):
        env.step([0])
    assert env._simulation.lights[env.steps] < 0.5
    first, saved = env.pixels(), env.save()
    other = world().make("crafter_score", pixels=True)
    other.reset(9)
    other.restore(saved)
    assert (env.pixels() == first).all() and (other.pixels() == first).all()
    env.step([0])
    assert (env.pixels() != first).any()


def test_the_fingerprint_guards_the_worlds(monkeypatch):
    fingerprint.check_fingerprint()
    monkeypatch.setattr(fingerprint, "RECORDED", hashlib.blake2b(b"other", digest_size=8).hexdigest())
    with pytest.raises(fingerprint.DifferentWorlds, match=r"constraints\.txt"):
        fingerprint.check_fingerprint()


def test_feature_offsets_follow_their_sizes():
    assert sum(feature.size for feature in FEATURES.values()) == senses.FEATURES_SIZE


def test_unknown_features_are_one_sentence():
    with pytest.raises(ValueError, match="Crafter's features are"):
        world().make("collect_wood", features=["map"])
