"""Replay recorded commands in a plain MuJoCo simulation of stock's own model file.

`python -m tests.worlds.kitchen.replay SESSION.db TASK [--episodes 15]` does so for the test episodes of a session, of
each variant so many, with our step of the simulation and with stock's.
"""

from __future__ import annotations

import argparse
import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np
import zstandard
from gymnasium_robotics.envs.franka_kitchen import kitchen_env as stock

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.kitchen.arm import Servo
from rlgpt.training.worlds.kitchen.env import KitchenEnv
from rlgpt.training.worlds.kitchen.model import SUBSTEPS, TIMESTEP, model_file
from rlgpt.training.worlds.kitchen.names import NATIVE_ACTION_SIZE
from rlgpt.training.worlds.kitchen.tasks import objects_of

STOCK_TIMESTEP = 0.002


def replay(env: KitchenEnv, seed: int, commands: Sequence[Sequence[int]], timestep: float = TIMESTEP) -> bool:
    """Whether each object of the task has passed stock's own test of success after some env step; of our env only the
    start of its episode is used."""
    env.reset(seed)
    model = mujoco.MjModel.from_xml_path(str(model_file()))
    model.opt.timestep = timestep
    model.body_pos[1] = env._model.body_pos[1]
    data = mujoco.MjData(model)
    data.qpos[:] = env._data.qpos
    data.ctrl[7:] = 0.04
    mujoco.mj_forward(model, data)
    servo, site = Servo(model, data), model.site("end_effector").id
    aim, roll = data.site_xpos[site].copy(), 0.0
    left = {name.replace("_", " ") for name in objects_of(env.task)}
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
        left = {name for name in left if not _at_goal(data, name)}
    return not left


def _at_goal(data: mujoco.MjData, name: str) -> bool:
    achieved = data.qpos[stock.OBS_ELEMENT_INDICES[name]]
    return bool(math.dist(achieved, stock.OBS_ELEMENT_GOALS[name]) < stock.BONUS_THRESH)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("database", type=Path)
    parser.add_argument("task")
    parser.add_argument("--episodes", type=int, default=15)
    chosen = parser.parse_args()
    env = registry.get("kitchen").make(chosen.task)
    rows = sqlite3.connect(f"file:{chosen.database}?mode=ro", uri=True).execute(
        "select variant, seed, success, actions from episode where split = 'test' and actions is not null order by seq"
    )
    counts: dict[str, list[int]] = {}
    for variant, seed, success, actions in rows:
        count = counts.setdefault(variant, [0, 0, 0, 0])
        if count[0] < chosen.episodes:
            packed = zstandard.ZstdDecompressor().decompress(actions)
            commands = np.frombuffer(packed, "<i2").reshape(-1, NATIVE_ACTION_SIZE).tolist()
            again = [replay(env, seed, commands, timestep) for timestep in (TIMESTEP, STOCK_TIMESTEP)]
            for at, value in enumerate((1, success, again[0] == bool(success), again[1] == bool(success))):
                count[at] += int(value)
    for variant, (episodes, won, same, same_as_stock) in counts.items():
        print(f"{variant}: {episodes} episodes, {won} won; same at 5 ms {same}, at 2 ms {same_as_stock}")


if __name__ == "__main__":
    main()
