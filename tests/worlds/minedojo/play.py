"""What chance and the script book alone win, by the evaluation that sessions use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.rollouts.evaluation import EvaluationResult, FollowPlan, evaluate
from rlgpt.training.worlds.minedojo.world import MineDojoWorld


def at_random(world: MineDojoWorld, task: str, episodes: int) -> EvaluationResult:
    """Uniform random actions of the two heads."""
    policy = FollowPlan(world, [], {})
    policy.space = replace(policy.space, primitives=np.ones(world.action_nvec[0], np.bool_))
    host = open_host(world, lanes=world.max_envs, mode="trusted")
    return evaluate(world, task, policy, host, range(episodes), variant="random")


def code_alone(world: MineDojoWorld, task: str, episodes: int, version: int) -> EvaluationResult:
    """`follow_plan` with this version of each script (its last one where it has fewer)."""
    host = open_host(world, lanes=world.max_envs, mode="trusted")
    env = world.make(task)
    env.reset(0)
    views = [[env.view(True)]]
    env.close()
    plan, sources, predicates = [], {}, {}
    for script in world.scripts(task):
        source = script.sources[min(version, len(script.sources) - 1)]
        assert host.admit("action", source, views).admitted
        assert host.admit("done_when", script.done_when, views).admitted
        plan.append(PlanItem(script.done_when, Action(source_hash(source))))
        sources[source_hash(source)] = source
        predicates[script.name] = script.done_when
    policy = FollowPlan(world, plan, sources)
    return evaluate(world, task, policy, host, range(episodes), variant="plan", predicates=predicates)
