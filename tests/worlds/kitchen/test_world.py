"""The kitchen's own promises, beside those of every world."""

# ruff: noqa: E402
import subprocess
import sys

import numpy as np
import pytest

MISSING = "The kitchen is not installed: pip install 'rlgpt[kitchen]'."
pytest.importorskip("mujoco", reason=MISSING)
pytest.importorskip("gymnasium_robotics", reason=MISSING)

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.conformance import check
from rlgpt.training.worlds.kitchen import frame, names
from rlgpt.training.worlds.kitchen.env import NEAR_HANDLE
from rlgpt.training.worlds.kitchen.features import MAX_QUIET
from rlgpt.training.worlds.kitchen.host_side import decoder
from rlgpt.training.worlds.kitchen.model import compile_model
from rlgpt.training.worlds.kitchen.tasks import BLIND
from tests.worlds.kitchen.play import plan_of, play

STILL = (0, 0, 0, 0, 0)


@pytest.fixture(scope="module")
def world():
    return registry.get("kitchen")


def view_of(env):
    return decoder().view(env.view(True))


def far(one, other):
    return float(np.linalg.norm(np.subtract(one, other)))


def test_it_passes_the_conformance_check(world):
    assert not [finding for finding in check(world) if not finding.ok]


def test_objects_goals_and_threshold_are_stock_s():
    from gymnasium_robotics.envs.franka_kitchen import kitchen_env as stock

    ours = {each.name.replace("_", " "): each for each in names.OBJECTS}
    assert set(ours) == set(stock.OBS_ELEMENT_GOALS)
    for name, each in ours.items():
        assert each.joints == tuple(stock.OBS_ELEMENT_INDICES[name])
        assert each.goal == tuple(stock.OBS_ELEMENT_GOALS[name])
    assert names.THRESHOLD == stock.BONUS_THRESH


def test_what_is_told_of_hinges_and_bars_is_the_models():
    import mujoco

    model = compile_model()
    data = mujoco.MjData(model)
    for each in names.OBJECTS:
        data.qpos[list(each.joints)] = each.start
    mujoco.mj_forward(model, data)
    docs = {each.name: each.doc for each in names.OBJECTS}

    def told(name, *figures):
        for text in figures:
            assert text in docs[name], (name, text)

    def turned(name, index):
        """(hinge from the handle, handle's way until it is done): mm right and ahead."""
        each = names.OBJECTS[names.INDEX[name]]
        angle = each.goal[index] - np.sign(each.goal[index]) * names.THRESHOLD
        handle = 1000 * data.site(each.site).xpos[:2]
        hinge = 1000 * data.xanchor[np.flatnonzero(model.jnt_qposadr == each.joints[index])[0]][:2]
        x, y = handle - hinge
        moved = np.array((x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)))
        return np.round(hinge - handle), np.round(moved - (x, y)), f"{round(1000 * abs(angle))} mrad"

    def bar(name):
        """Thickness and length in mm of the longest round part of the body that the handle belongs to."""
        body = model.site_bodyid[model.site(names.OBJECTS[names.INDEX[name]].site).id]
        parts = np.flatnonzero((model.geom_bodyid == body) & np.isin(model.geom_type, (3, 5)))
        radius, half, _ = max(model.geom_size[parts], key=lambda size: size[1])
        return f"{round(2000 * radius)} mm thick, {round(2000 * half)} mm long"

    (right, ahead), (dx, dy), done = turned("microwave", 0)
    told("microwave", f"{-right:.0f} mm to the left of the handle and {-ahead:.0f} mm nearer", f"Done from {done}")
    told("microwave", f"{-dx:.0f} mm further left and {-dy:.0f} mm nearer", bar("microwave"))
    (right, ahead), (dx, dy), done = turned("hinge_cabinet", 1)
    told("hinge_cabinet", f"{right:.0f} mm to the right of the handle and {ahead:.0f} mm behind it", done)
    told("hinge_cabinet", f"{dx:.0f} mm further right and {-dy:.0f} mm nearer", bar("hinge_cabinet"))
    (right, ahead), _, done = turned("light_switch", 0)
    told("light_switch", f"{ahead:.0f} mm behind its tip and {-right:.0f} mm to the left", f"Done from {done}")
    told("slide_cabinet", bar("slide_cabinet"), "Done from 70 mm")
    for name, index in (("microwave", 0), ("hinge_cabinet", 1)):
        each = names.OBJECTS[names.INDEX[name]]
        hinge = 1000 * data.xanchor[np.flatnonzero(model.jnt_qposadr == each.joints[index])[0]][:2]
        assert np.allclose(frame.HINGES[names.INDEX[name]], hinge, atol=1), f"the drawn hinge of {name}"


def test_a_command_of_zeros_holds_the_hand_where_it_is(world):
    env = world.make("hinge_cabinet")
    for seed in range(4):
        env.reset(seed)
        start = view_of(env).hand
        for _ in range(60):
            env.step(STILL)
        assert far(view_of(env).hand, start) <= 8


def test_the_hand_follows_its_aim_to_the_millimetre(world):
    env = world.make("hinge_cabinet")
    env.reset(3)
    start = view_of(env).aim
    for _ in range(10):
        env.step((12, 0, 0, 0, 0))
    for _ in range(8):
        env.step(STILL)
    assert far(view_of(env).hand, (start[0] + 120, start[1], start[2])) <= 3


def test_the_aim_stays_on_its_leash_whatever_is_in_the_way(world):
    env = world.make("hinge_cabinet")
    env.reset(0)
    for _ in range(100):
        env.step((0, 60, 0, 0, 0))
    # The leash binds the aim when a command is given; within the env step the hand may still give way.
    assert far(view_of(env).lag, (0, 0, 0)) <= 2 * names.LEASH


def test_starts_differ_by_seed_within_the_published_ranges(world):
    env = world.make("hinge_cabinet")
    hands = set()
    for seed in range(20):
        env.reset(seed)
        view = view_of(env)
        hands.add(view.hand)
        kettle = view.handle("kettle")
        assert abs(kettle[0] + 269) <= 32
        assert abs(kettle[1] - 350) <= 32
        assert view.handle("hinge_cabinet") == (-526, 582, 2600)
        assert not view.reached
    assert len(hands) == 20


def test_a_blind_task_differs_from_the_exact_one_only_in_what_is_said_about_handles(world):
    exact, blind = world.make("microwave"), world.make("microwave_blind2")
    errors = []
    for seed in range(40):
        exact.reset(seed)
        blind.reset(seed)
        for command in [(10, 20, 0, 0, 0)] * 3:
            exact.step(command)
            blind.step(command)
        seen, told = view_of(exact), view_of(blind)
        assert seen.hand == told.hand
        assert seen.opened("kettle") == told.opened("kettle")
        for name in names.NAMES:
            errors += [b - a for a, b in zip(seen.handle(name), told.handle(name), strict=True)]
    assert 0.8 * 1000 * BLIND < float(np.std(errors)) < 1.2 * 1000 * BLIND
    assert abs(float(np.mean(errors))) < 0.2 * 1000 * BLIND


def test_a_place_cannot_be_learnt_by_heart_where_it_is_told_in_the_robots_frame(world):
    kitchens, robots = world.make("microwave_blind2"), world.make("microwave_blind2_robot")
    saved, places = world.make("microwave_blind2_robot"), []
    for seed in range(40):
        kitchens.reset(seed)
        robots.reset(seed)
        for command in [(10, 20, 0, 0, 0)] * 3:
            kitchens.step(command)
            robots.step(command)
        saved.restore(robots.save())
        assert saved.view(True) == robots.view(True)
        seen, told = view_of(kitchens), view_of(robots)
        shift = [there - here for here, there in zip(seen.hand, told.hand, strict=True)]
        assert shift[2] == 0
        for here, there in ((seen.aim, told.aim), *((seen.handle(n), told.handle(n)) for n in names.NAMES)):
            assert all(abs(b - a - c) <= 1 for a, b, c in zip(here, there, shift, strict=True))
        features = np.abs(kitchens.observe() - robots.observe()) > 1e-6
        assert np.flatnonzero(features).tolist() == [14, 15]  # x and y of the hand; nothing else is a place
        places.append(shift[:2])
    assert 25 < np.abs(places).max() <= 31
    assert 14 < float(np.std(places)) < 21  # uniform within 3 cm: 17


def test_an_episode_does_not_depend_on_the_thread_that_simulates_it(world):
    plain, threaded = world.make("kettle"), world.make("kettle")
    draw = np.random.default_rng(5)
    commands = [world.native_action([int(draw.integers(size)) for size in world.action_nvec]) for _ in range(40)]
    for env in (plain, threaded):
        env.reset(11)
    for command in commands:
        plain.step(command)
        threaded.begin_step(command)
        threaded.step(command)
    assert plain.save() == threaded.save()


def test_a_saved_kitchen_goes_on_alike_where_the_robot_stands_elsewhere(world):
    env, other = world.make("microwave_blind2"), world.make("microwave_blind2")
    env.reset(1)
    other.reset(2)
    for _ in range(30):
        env.step((-12, 20, -12, 0, -1))
    other.restore(env.save())
    for command in [(0, 20, -20, 50, 0)] * 30:
        assert env.step(command) == other.step(command)
        assert env.view(True) == other.view(True)
    assert env.observe().tolist() == other.observe().tolist()


def test_the_policy_sees_for_how_long_nothing_was_new(world):
    env = world.make("microwave", features=["quiet"])
    known = env.novelty()
    for step in range(1, 50):
        env.step(STILL)
        assert env.novelty() == known and env.observe()[0] == pytest.approx(min(1.0, step / MAX_QUIET))
    while env.novelty() == known:
        env.step((0, 40, 0, 0, 0))
    assert env.observe()[0] == 0.0
    while env.observe()[0] < 3 / MAX_QUIET:  # the hand comes to rest
        env.step(STILL)
    other = world.make("microwave", features=["quiet"])
    other.restore(env.save())
    assert other.observe()[0] == env.observe()[0]


def test_the_policy_sees_where_a_handle_was_felt_once_it_was_held(world):
    env, held = world.make("microwave_blind2", features=["target_felt"]), 0
    for seed in range(6):
        env.reset(seed)
        assert not env.observe().any()
        played = play(env, seed, plan_of("microwave_blind2"))
        felt = 0.05 * env.observe()
        assert ("microwave_grasped" in played.milestones) == bool(felt.any())
        if felt.any() and np.abs(felt).max() < 0.05:  # beyond that it is cut
            held += 1
            assert far(felt, env._handle_errors[names.INDEX["microwave"]]) < NEAR_HANDLE
    assert held


def test_the_chain_is_won_when_each_of_its_objects_was_at_its_goal(world):
    env = world.make("kitchen_complete")
    env.reset(0)
    one = {each.name: each for each in names.OBJECTS}
    for name in ("slide_cabinet", "microwave", "light_switch", "kettle"):
        assert not env.succeeded()
        each = one[name]
        env._data.qpos[list(each.joints)] = each.goal
        result = env.step(STILL)
    assert result.terminated
    assert result.reward == 1.0
    assert env.succeeded()
    assert "kitchen_complete" in env.milestones()


def test_what_is_nobody_s_command_is_clamped_or_refused_in_the_host_only(world):
    """Commands beyond the ranges cannot come from a policy; those of code are checked by `encode`."""
    from rlgpt.training.worlds.kitchen.host_side import encode

    for wrong in (None, "x_plus_12", (0, 0, 0, 0), (0.0, 0, 0, 0, 0), (61, 0, 0, 0, 0), (0, 0, 0, 201, 0), (True,) * 5):
        with pytest.raises(ValueError, match=r"yield|must be an int"):
            encode(wrong)


def test_another_world_does_not_import_it():
    code = (
        "import sys; from rlgpt.training.worlds import registry; registry.names(); registry.get('crafter');"
        "sys.exit('mujoco' in sys.modules or 'gymnasium_robotics' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-P", "-c", code], timeout=500, check=False).returncode == 0
