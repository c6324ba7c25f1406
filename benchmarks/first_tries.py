"""Does PPO improve on a plan of ordinary quality? `python -P benchmarks/first_tries.py [--rl JSON] [--health 2]`.

The plan is the first version of each script on the way to collect_diamond (the world `make_first_try`). It is played
alone, then PPO trains near it, and both are played on the same development seeds of a session seed that no session has:
successes with Wilson's 95% interval, and how the episodes ended.

The reward has 1 for each milestone of the plan, 3 for the diamond, and --health for all of the health at once, so that
damage is paid when it is done. --rl: fields of the RL configuration in place of those below, as in RLGPT_METHOD__RL.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from rlgpt.agents.contracts import RewardTerm, RlConfigReply, with_fields
from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.slots import FOLLOW, CodedAction
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import EvaluationResult, FollowPlan, evaluate
from rlgpt.training.rollouts.script_bot import script_bot
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.crafter.world import make_first_try

TASK = "collect_diamond"
LANES = 16
SESSION_SEED = 9000
HEALTH = "def reward(before, view):\n    return (view.health - before.health) / 9\n"
SETTINGS: dict[str, Any] = {
    "n_envs": LANES, "n_steps": 1024, "batch_size": 512, "gamma": 0.98, "ent_coef": 0.0, "learning_rate": 1e-3,
    "width": 128,
}  # fmt: skip


def told(name: str, played: EvaluationResult) -> str:
    ends = ", ".join(f"{end} {count}" for end, count in played.failures["ends"].items())
    interval = f"[{played.ci_low:.2f}, {played.ci_high:.2f}]"
    return f"{name:8s} {played.successes}/{len(played.episodes)} {interval}  {ends}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rl", type=json.loads, default={}, help="JSON object")
    parser.add_argument("--health", type=float, default=0.0)
    parser.add_argument("--env-steps", type=int, default=600_000)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    world = make_first_try()
    host = open_host(world, lanes=LANES, mode="trusted")
    env = world.make(TASK)
    view = env.view(True)
    options, plan = [], []
    for step in script_bot(world, TASK):
        said = host.admit("action", step.source, [[view]])
        host.admit("done_when", step.done_when, [[view]])
        options.append(CodedAction(step.name, step.source, said.tree_hash))
        plan.append(PlanItem(step.done_when, Action(step.source_hash)))
    host.admit("reward", HEALTH, [[view, view]])
    sources = {option.source_hash: option.source for option in options} | {source_hash(HEALTH): HEALTH}
    reward = [RewardTerm(term="milestone", argument=option.name, weight=1.0) for option in options[:-1]]
    reward.append(RewardTerm(term="task", weight=3.0))
    if arguments.health:
        reward.append(RewardTerm(term="generated", argument=source_hash(HEALTH), weight=arguments.health))
    config = RlConfigReply(
        target="", observation=list(world.default_features), reward=reward,
        primitives=[primitive.name for primitive in world.primitives], options=[FOLLOW], option_prior=0.05,
        plan_prior=0.9, option_cap=4, horizon=world.tasks[TASK].horizon, env_steps=arguments.env_steps,
    )  # fmt: skip
    config = with_fields(config, {"hyperparameters": SETTINGS})
    config = with_fields(config, arguments.rl)
    seeds = [episode_seed(SESSION_SEED, "dev", index) for index in range(arguments.episodes)]
    alone = FollowPlan(world, plan, sources, options=options)
    print(told("plan", evaluate(world, TASK, alone, host, seeds, n_envs=LANES)), flush=True)
    began = time.perf_counter()
    result = train(world, TASK, config, options, host, seed=arguments.seed, plan=plan, sources=sources)
    print(f"{result.env_steps} env steps in {time.perf_counter() - began:.0f} s", flush=True)
    policy = load_policy(result.checkpoint, world)
    for name, greedy in (("sampled", False), ("greedy", True)):
        played = evaluate(world, TASK, policy, host, seeds, n_envs=LANES, greedy=greedy)
        print(told(name, played), flush=True)
    host.close()


if __name__ == "__main__":
    main()
