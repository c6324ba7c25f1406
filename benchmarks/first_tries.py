"""Does PPO improve on a plan of ordinary quality? `python -P benchmarks/first_tries.py [--workshop] [--rl JSON]`.

The plan is the first version of each script on the way to collect_diamond (the world `make_first_try`). PPO trains near
it; then the plan alone and the policy's most probable actions are played on the same held-out episodes: successes with
Wilson's 95% interval, and how the episodes ended. With several --seeds a training for each, every one with episodes of
its own, and the mean difference with Student's 95% interval.

--workshop offers the policy one more coded action that the plan never calls: a table and a furnace where the agent
stands. --by-hand also plays the plan with that code as a guard, called as soon as iron and coal are held.
--last-versions takes the plan of the last versions instead; --env-steps 0 trains nothing.

The reward has 1 for the iron pickaxe and 2 for the diamond; with --milestones 1 for each milestone of the plan and 3
for the diamond, and --health for all of the health at once, so that damage is paid when it is done. --rl: fields of the
RL configuration in place of those below, as in RLGPT_METHOD__RL.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from scipy.stats import t as student

from rlgpt.agents.contracts import RewardTerm, RlConfigReply, with_fields
from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.slots import FOLLOW, CodedAction
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import EvaluationResult, FollowPlan, evaluate
from rlgpt.training.rollouts.script_bot import script_bot
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.crafter.scripts import WORKSHOP
from rlgpt.training.worlds.crafter.world import make_first_try, make_world

TASK = "collect_diamond"
LANES = 16
SESSION_SEED = 9100
"""Held-out episodes are those of the test seeds of this session seed and the next ones, which no session has."""
HEALTH = "def reward(before, view):\n    return (view.health - before.health) / 9\n"
SETTINGS: dict[str, Any] = {
    "n_envs": LANES, "n_steps": 2048, "batch_size": 512, "gamma": 0.995, "ent_coef": 0.0, "learning_rate": 5e-4,
    "width": 128,
}  # fmt: skip


def told(name: str, played: EvaluationResult) -> str:
    ends = ", ".join(f"{end} {count}" for end, count in played.failures["ends"].items())
    interval = f"[{played.ci_low:.2f}, {played.ci_high:.2f}]"
    return f"{name:8s} {played.successes}/{len(played.episodes)} {interval}  {ends}"


def told_difference(differences: Sequence[float]) -> str:
    count = len(differences)
    half = float(student.ppf(0.975, count - 1)) * stdev(differences) / count**0.5
    return f"{mean(differences):+.3f} [{mean(differences) - half:+.3f}, {mean(differences) + half:+.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workshop", action="store_true")
    parser.add_argument("--by-hand", action="store_true")
    parser.add_argument("--last-versions", action="store_true")
    parser.add_argument("--rl", type=json.loads, default={}, help="JSON object")
    parser.add_argument("--milestones", action="store_true")
    parser.add_argument("--health", type=float, default=0.0)
    parser.add_argument("--env-steps", type=int, default=2_000_000)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    arguments = parser.parse_args()
    world = make_world() if arguments.last_versions else make_first_try()
    host = open_host(world, lanes=LANES, mode="locked")
    env = world.make(TASK)
    view = env.view(True)
    env.close()
    options, plan = [], []
    for step in script_bot(world, TASK):
        said = host.admit("action", step.source, [[view]])
        host.admit("done_when", step.done_when, [[view]])
        options.append(CodedAction(step.name, step.source, said.tree_hash))
        plan.append(PlanItem(step.done_when, Action(step.source_hash)))
    (source,) = WORKSHOP.sources
    said = host.admit("action", source, [[view]])
    workshop = CodedAction(said.name, source, said.tree_hash, has_available=said.has_available)
    for predicate in (WORKSHOP.done_when, WORKSHOP.trigger):
        host.admit("done_when", predicate, [[view]])
    guard = PlanItem(WORKSHOP.done_when, Action(workshop.source_hash), WORKSHOP.trigger)
    host.admit("reward", HEALTH, [[view, view]])
    sources = {option.source_hash: option.source for option in (*options, workshop)} | {source_hash(HEALTH): HEALTH}
    if arguments.milestones:
        reward = [RewardTerm(term="milestone", argument=option.name, weight=1.0) for option in options[:-1]]
        reward.append(RewardTerm(term="task", weight=3.0))
    else:
        pickaxe = RewardTerm(term="milestone", argument="make_iron_pickaxe", weight=1.0)
        reward = [pickaxe, RewardTerm(term="task", weight=2.0)]
    if arguments.health:
        reward.append(RewardTerm(term="generated", argument=source_hash(HEALTH), weight=arguments.health))
    offered = [FOLLOW, workshop.name] if arguments.workshop else [FOLLOW]
    config = RlConfigReply(
        target="", observation=list(world.default_features), reward=reward,
        primitives=[] if arguments.workshop else ["place_table"], options=offered, option_prior=0.04, plan_prior=0.95,
        prior_kl=0.02, option_cap=8 if arguments.workshop else 4, horizon=world.tasks[TASK].horizon,
        env_steps=arguments.env_steps,
    )  # fmt: skip
    config = with_fields(config, {"hyperparameters": SETTINGS})
    config = with_fields(config, arguments.rl)
    differences = []
    for seed in arguments.seeds:
        episodes = [episode_seed(SESSION_SEED + seed, "test", index) for index in range(arguments.episodes)]
        alone = FollowPlan(world, plan, sources, options=options)
        played = evaluate(world, TASK, alone, host, episodes, n_envs=LANES)
        print(f"seed {seed}\n{told('plan', played)}", flush=True)
        if arguments.by_hand:
            better = FollowPlan(world, [guard, *plan], sources, options=[*options, workshop])
            print(told("by hand", evaluate(world, TASK, better, host, episodes, n_envs=LANES)), flush=True)
        if not arguments.env_steps:
            continue
        began = time.perf_counter()
        result = train(world, TASK, config, [*options, workshop], host, seed=seed, plan=plan, sources=sources)
        print(f"{result.env_steps} env steps in {time.perf_counter() - began:.0f} s", flush=True)
        policy = load_policy(result.checkpoint, world)
        learnt = evaluate(world, TASK, policy, host, episodes, n_envs=LANES, greedy=True)
        print(told("policy", learnt), flush=True)
        differences.append((learnt.successes - played.successes) / arguments.episodes)
    if len(differences) > 1:
        print(f"policy - plan: {told_difference(differences)} over {len(differences)} seeds")
    host.close()


if __name__ == "__main__":
    main()
