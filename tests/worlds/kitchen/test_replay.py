"""Recorded commands of an episode give the same success in a plain MuJoCo simulation of stock's own model file."""

# ruff: noqa: E402
import math

import pytest

from tests.worlds.kitchen.test_world import MISSING

mujoco = pytest.importorskip("mujoco", reason=MISSING)
pytest.importorskip("gymnasium_robotics", reason=MISSING)

import numpy as np
from gymnasium_robotics.envs.franka_kitchen import kitchen_env as stock

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.kitchen.arm import Servo
from rlgpt.training.worlds.kitchen.model import SUBSTEPS, TIMESTEP, assets
from tests.worlds.kitchen.play import plan_of, play


def replay(env, seed, commands, timestep=TIMESTEP):
    """Whether stock's own test of success holds at the end: nothing of our env but where its episode starts."""
    env.reset(seed)
    model = mujoco.MjModel.from_xml_path(str(assets()))
    model.opt.timestep = timestep
    model.body_pos[1] = env._model.body_pos[1]
    data = mujoco.MjData(model)
    data.qpos[:] = env._data.qpos
    data.ctrl[7:] = 0.04
    mujoco.mj_forward(model, data)
    servo, site = Servo(model, data), model.site("end_effector").id
    aim, roll = data.site_xpos[site].copy(), 0.0
    for command in commands:
        lag = aim + np.array(command[:3]) / 1000 - data.site_xpos[site]
        aim = data.site_xpos[site] + lag * min(1.0, 0.06 / max(float(np.linalg.norm(lag)), 1e-9))
        roll = max(-1.6, min(1.6, roll + command[3] / 1000))
        data.ctrl[:7] = servo.joint_targets(aim, roll)
        if command[4]:
            data.ctrl[7:] = 0.04 if command[4] > 0 else 0.0
        for _ in range(round(SUBSTEPS * TIMESTEP / timestep)):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
    name = env.task.id.removesuffix("_blind2").replace("_", " ")
    achieved = data.qpos[stock.OBS_ELEMENT_INDICES[name]]
    return math.dist(achieved, stock.OBS_ELEMENT_GOALS[name]) < stock.BONUS_THRESH


@pytest.mark.parametrize("task", ["slide_cabinet", "microwave", "light_switch_blind2", "top_burner"])
def test_recorded_commands_give_the_same_success(task):
    env = registry.get("kitchen").make(task)
    outcomes = set()
    for seed in range(700_000, 700_003):
        played = play(env, seed, plan_of(task, 2))
        assert replay(env, seed, played.commands) == played.success
        outcomes.add(played.success)
    assert True in outcomes


def test_an_episode_cut_short_has_no_success():
    env = registry.get("kitchen").make("slide_cabinet")
    played = play(env, 700_000, plan_of("slide_cabinet"))
    assert played.success
    assert not replay(env, 700_000, played.commands[:-6])
