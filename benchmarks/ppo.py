"""Env steps per second of a whole PPO run: `python -P benchmarks/ppo.py [--repeats 3] [--host locked] [--pixels]`.

Peers in one run, repeats interleaved, updates and resets included, episodes of 500 steps:
  stock PPO, stock crafter    stable-baselines3 PPO, MlpPolicy on the 9x7 crop and the inventory
  stock PPO, our world        the same on our Crafter world's default features
  ours, primitives            our PPO, 17 primitives
  ours, 9 coded actions       our PPO, primitives and 9 options, one of them follow_plan
  a whole session             the real worker on a real session of collect_iron with its coded actions and follow_plan:
                              locked host, updates, rows, checkpoints, frames and telemetry, from the training's first
                              row to its last
With --quality instead: is ours as good a learner? Stock PPO on our world against ours on the same primitives, with the
same hyperparameters and reward, on paired seeds: place_table after --env-steps, 50 dev episodes each, and the paired
difference with its 95% interval (Student's t over seeds).
--kernel compiled: ours with compiled updates (training/ppo/ppo.py).
With --pixels instead: CnnPolicy on stock crafter against ours on 64x64 pictures, and a whole session on them, on CUDA
where there is one and --device does not say otherwise.
The ratio is to the first line, of medians. A first short run of everything warms caches.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crafter
import gymnasium
import numpy as np
import torch as th
from scipy.stats import t as student
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from rlgpt.agents.contracts import Hyperparameters, RewardTerm, RlConfigReply
from rlgpt.store.commands import parse_command
from rlgpt.store.folder import SessionFolder
from rlgpt.store.inbox import send
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import EventRow, TrainingRunRow
from rlgpt.training.host.api import Action, Host, PlanItem
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.slots import CodedAction
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import evaluate
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.crafter.world import CrafterWorld, make_world
from rlgpt.training.worlds.protocol import Env

TASK = "collect_iron"
QUALITY_TASK = "place_table"
HORIZON = 500
LANES = 16
SETTINGS = Hyperparameters(n_envs=LANES, n_steps=2048 // LANES, batch_size=256)


class StockCrafter(gymnasium.Env[Any, Any]):
    """crafter.Env as published; `picture`: its own observation, else a cheap crop for an MLP."""

    def __init__(self, seed: int, picture: bool) -> None:
        self.env = crafter.Env(length=HORIZON, seed=seed)
        self.picture = picture
        self.action_space = gymnasium.spaces.Discrete(17)
        shape = (64, 64, 3) if picture else (9 * 7 + 16,)
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8 if picture else np.float32)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return self._seen(self.env.reset()), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        picture, reward, done, _ = self.env.step(int(action))
        return self._seen(picture), float(reward), bool(done), False, {}

    def _seen(self, picture: Any) -> Any:
        if self.picture:
            return picture
        player = self.env._player
        x, y = player.pos
        ground = np.pad(self.env._world._mat_map, ((4, 4), (3, 3)))[x : x + 9, y : y + 7]
        return np.concatenate([ground.ravel(), list(player.inventory.values())]).astype(np.float32)


class OurCrafter(gymnasium.Env[Any, Any]):
    """Our Crafter world for stock PPO."""

    def __init__(self, world: CrafterWorld, seed: int, task: str = TASK) -> None:
        self.env: Env = world.make(task)
        self.seed = seed
        self.env.reset(seed)
        size = len(self.env.observe())
        self.action_space = gymnasium.spaces.Discrete(17)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.seed += 1000
        self.env.reset(self.seed)
        return self.env.observe().copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        result = self.env.step((int(action),))
        return self.env.observe().copy(), result.reward, result.terminated, False, {}


def stock(make: Callable[[int], gymnasium.Env[Any, Any]], policy: str, device: str) -> Callable[[int], float]:
    model = PPO(
        policy, DummyVecEnv([lambda i=i: make(i) for i in range(LANES)]), n_steps=2048 // LANES,  # type: ignore[misc]
        batch_size=256, n_epochs=SETTINGS.n_epochs, device=device, seed=0,
    )  # fmt: skip

    def run(env_steps: int) -> float:
        began, before = time.perf_counter(), model.num_timesteps
        model.learn(env_steps, reset_num_timesteps=False)
        return (model.num_timesteps - before) / (time.perf_counter() - began)

    return run


def ours(
    world: CrafterWorld, host: Host, options: int, pixels: bool, device: str, kernel: str
) -> Callable[[int], float]:
    book = {script.name: script for script in world.scripts(TASK)}
    order: list[str] = []

    def chain(name: str) -> None:
        for needed in book[name].needs:
            chain(needed)
        if name not in order:
            order.append(name)

    chain(TASK)
    names = (order + [name for name in book if name not in order])[: max(0, options - 1)]
    actions: dict[str, CodedAction] = {}
    env = world.make(TASK)
    env.reset(0)
    for name in dict.fromkeys((*order, *names)):
        source = book[name].sources[-1]
        said = host.admit("action", source, [[env.view(True)]])
        host.admit("done_when", book[name].done_when, [[env.view(True)]])
        told = (said.tree_hash, said.arguments, said.uninterruptible, said.has_available)
        actions[name] = CodedAction(name, source, *told)
    plan = [
        PlanItem(
            book[name].done_when,
            Action(
                actions[name].source_hash,
                tuple((key, values[0]) for key, values in actions[name].arguments.items()),
            ),
        )
        for name in order
    ]
    config = RlConfigReply(
        target="",
        observation=["pixels"] if pixels else list(world.default_features),
        reward=[RewardTerm(term="task", weight=1.0), RewardTerm(term="world", weight=0.1)],
        primitives=[primitive.name for primitive in world.primitives],
        options=[*names, "follow_plan"] if options else [],
        horizon=HORIZON,
        env_steps=0,
        hyperparameters=SETTINGS,
    )
    sources = {action.source_hash: action.source for action in actions.values()}
    seeds = iter(range(1000))

    def run(env_steps: int) -> float:
        began = time.perf_counter()
        chosen = [actions[name] for name in names]
        result = train(
            world, TASK, config, chosen, host, seed=next(seeds), device=device, kernel=kernel, plan=plan,
            sources=sources, env_steps=env_steps,
        )  # fmt: skip
        return result.env_steps / (time.perf_counter() - began)

    return run


def quality(world: CrafterWorld, host: Host, seeds: int, env_steps: int) -> None:
    """Prints the success of both learners for every seed, and what their difference comes to."""
    config = RlConfigReply(
        target="", observation=list(world.default_features), reward=[RewardTerm(term="world", weight=1.0)],
        primitives=[primitive.name for primitive in world.primitives], options=[], horizon=HORIZON, env_steps=env_steps,
        hyperparameters=SETTINGS,
    )  # fmt: skip
    differences = []
    for seed in range(seeds):
        dev = [episode_seed(seed, "dev", index) for index in range(50)]
        first = 100_000 * seed
        model = PPO(
            "MlpPolicy",
            DummyVecEnv([lambda i=i: OurCrafter(world, i, QUALITY_TASK) for i in range(first, first + LANES)]),  # type: ignore[misc]
            n_steps=SETTINGS.n_steps, batch_size=SETTINGS.batch_size, n_epochs=SETTINGS.n_epochs,
            learning_rate=SETTINGS.learning_rate, gamma=SETTINGS.gamma, gae_lambda=SETTINGS.gae_lambda,
            ent_coef=SETTINGS.ent_coef, clip_range=SETTINGS.clip_range, target_kl=SETTINGS.target_kl,
            device="cpu", seed=seed,
        ).learn(env_steps)  # fmt: skip
        theirs = statistics.fmean(_wins(model, world, number) for number in dev)
        result = train(world, QUALITY_TASK, config, [], host, seed=seed, plan=[], sources={}, env_steps=env_steps)
        played = evaluate(world, QUALITY_TASK, load_policy(result.checkpoint, world), host, dev, n_envs=LANES)
        mine = played.successes / len(dev)
        differences.append(mine - theirs)
        print(f"seed {seed}: stock {theirs:.2f}, ours {mine:.2f}", flush=True)
    mean, error = statistics.fmean(differences), statistics.stdev(differences) / seeds**0.5
    reach = float(student.ppf(0.975, seeds - 1)) * error
    interval = f"[{mean - reach:+.3f}, {mean + reach:+.3f}]"
    print(f"ours - stock: {mean:+.3f} {interval}, {seeds} paired seeds, {env_steps} env steps")


def _wins(model: PPO, world: CrafterWorld, seed: int) -> bool:
    env = world.make(QUALITY_TASK)
    env.reset(seed)
    for _ in range(HORIZON):
        action, _ = model.predict(env.observe())
        if env.step((int(action),)).terminated:
            break
    return env.succeeded()


def session(env_steps: int, observation: str = "symbolic", device: str = "auto", kernel: str = "eager") -> float:
    """Rate of the PPO of a session of its own, by the rows that tell its beginning and end."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"RLGPT_HOME": home}
        loop = {"iterations": 0, "dev_first": 1, "dev_more": 0, "test_episodes": 1}
        settings = {"task": TASK, "seed": 1, "skills": "none", "review": True, "loop": loop}
        settings |= {"observation": observation, "device": device, "kernel": kernel}
        settings["budget"] = {"env_steps": env_steps + 20_000}
        command = [sys.executable, "-P", "-m"]
        made = subprocess.run(
            [*command, "rlgpt.training.service"],
            input=json.dumps({"ask": "create", "settings": settings}).encode(),
            env=environment, capture_output=True, check=True,
        )  # fmt: skip
        folder = SessionFolder(Path(json.loads(made.stdout)["ok"]["folder"]))
        worker = subprocess.Popen([*command, "rlgpt.training.supervisor", str(folder.path)], env=environment)
        with Reader(folder) as reader:
            while (plan := reader.history_at().pending_plan) is None:
                time.sleep(0.1)
            edit = {"edits": [{"op": "executor", "value": "policy"}], "apply": "now"}
            send(folder, parse_command("override", edit), plan.revision)
            send(folder, parse_command("approve", {}), plan.revision + 1)
            worker.wait()
            (began,) = [row["at"] for row in reader.rows(TrainingRunRow)]
            (ended,) = [row for row in reader.rows(EventRow) if row["kind"] == "training_ended"]
        return float(ended["payload"]["env_steps"] / (ended["at"] - began))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--host", default="locked", choices=["locked", "trusted"])
    parser.add_argument("--pixels", action="store_true")
    parser.add_argument("--kernel", default="eager", choices=["eager", "compiled"])
    parser.add_argument("--device", choices=["cpu", "cuda"], help="with --pixels")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--seeds", type=int, default=10, help="with --quality")
    parser.add_argument("--env-steps", type=int, default=20_480, help="of ours per repeat; stock on stock gets a tenth")
    arguments = parser.parse_args()
    th.set_num_threads(1)
    world = make_world()
    host = open_host(world, lanes=LANES, mode=arguments.host)
    if arguments.quality:
        quality(world, host, arguments.seeds, arguments.env_steps)
        host.close()
        return
    device = arguments.device or ("cuda" if arguments.pixels and th.cuda.is_available() else "cpu")
    kernel = arguments.kernel
    if arguments.pixels:
        peers = {
            "stock PPO, stock crafter, pixels": stock(lambda i: StockCrafter(i, True), "CnnPolicy", device),
            "ours, primitives, pixels": ours(world, host, 0, True, device, kernel),
            "ours, 9 coded actions, pixels": ours(world, host, 9, True, device, kernel),
            "a whole session, pixels": lambda steps: session(steps, "pixels", device, kernel),
        }
    else:
        peers = {
            "stock PPO, stock crafter": stock(lambda i: StockCrafter(i, False), "MlpPolicy", device),
            "stock PPO, our world": stock(lambda i: OurCrafter(world, i), "MlpPolicy", device),
            "ours, primitives": ours(world, host, 0, False, device, kernel),
            "ours, 9 coded actions": ours(world, host, 9, False, device, kernel),
            "a whole session": lambda steps: session(steps, kernel=kernel),
        }
    rates: dict[str, list[float]] = {name: [] for name in peers}
    for repeat in range(arguments.repeats + 1):
        for place, (name, run) in enumerate(peers.items()):
            rate = run(arguments.env_steps if place else max(2048, arguments.env_steps // 10))
            print(f"{'repeat ' + str(repeat) if repeat else 'warming up'}: {name} {rate:.0f}", file=sys.stderr)
            if repeat:
                rates[name].append(rate)
    host.close()
    base = statistics.median(next(iter(rates.values())))
    where = th.cuda.get_device_name(0) if device == "cuda" else "cpu"
    print(
        f"{where}, {os.cpu_count()} cores, host {arguments.host}, torch {th.__version__}, {arguments.repeats} repeats"
    )
    for name, found in rates.items():
        middle = statistics.median(found)
        print(f"{name:36s} {middle:9.0f} env steps/s   {middle / base:6.1f}x   [{min(found):.0f}, {max(found):.0f}]")


if __name__ == "__main__":
    main()
