"""From a configuration to what a run needs: action space, observation, programs, lanes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlgpt.agents.contracts import RlConfigReply
from rlgpt.training.host.api import PlanItem, Programs
from rlgpt.training.options.dead_loops import DeadLoopWatch
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.observation import Observation, build_observation, make_env
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.slots import (
    FOLLOW,
    ActionSpace,
    ActionSpaceError,
    CodedAction,
    build_slots,
    noop_of,
    primitive_mask,
)
from rlgpt.training.worlds.protocol import Task, World

MOST_BYTES = 2 << 30
"""Of memory for the decisions of a rollout, in a configuration of the fast agent's."""
MOST_BRANCHES = 0.25
"""Of a training's env steps, for the branches of one rollout: the last one's come on top of the budget."""


class ConfigError(ValueError):
    """The configuration does not fit the world; the sentence is the argument."""


@dataclass(frozen=True)
class Setup:
    world: World
    task: Task
    config: RlConfigReply
    space: ActionSpace
    observation: Observation
    target: str
    """Milestone that ends training episodes with success; empty for the task's own success."""
    horizon: int

    def lane(self, index: int) -> Lane:
        env = make_env(self.world, self.task.id, self.observation)
        stream = RewardStream(self.config.reward, self.world)
        return Lane(index, env, stream, DeadLoopWatch(self.horizon), self.horizon)


def build_setup(
    world: World, task_id: str, config: RlConfigReply, options: Sequence[CodedAction], plan: Sequence[PlanItem],
    sources: Mapping[str, str], previous: Sequence[Mapping[str, Any]], similar: Mapping[str, str] | None = None,
) -> Setup:  # fmt: skip
    """`sources` holds what plan and reward name beyond the options, by hash. Raises ConfigError,
    ActionSpaceError, ObservationError or RewardError with the sentence for the operator."""
    task = world.tasks[task_id]
    chosen = []
    for name in config.options:
        of_name = [option for option in options if option.name == name]
        if not of_name and (name != FOLLOW or not plan):
            raise ActionSpaceError(
                f"The configuration names the option {name!r}, but no such coded action is accepted."
            )
        chosen.extend(of_name)
    slots, actions = build_slots(
        chosen, plan, max_option_steps=config.option_cap, follow_plan=FOLLOW in config.options, previous=previous,
        similar=similar,
    )  # fmt: skip
    rewards = tuple(term.argument for term in config.reward if term.term == "generated")
    sources_by_hash = dict(sources) | {option.source_hash: option.source for option in options}
    needed = {action.source_hash for action in actions} | {*rewards}
    if FOLLOW in config.options:
        needed |= {item.action.source_hash for item in plan}
    missing = sorted(needed - sources_by_hash.keys())
    if missing:
        raise ConfigError(f"The source {missing[0]} is named by the configuration but was not given.")
    programs = Programs(
        {key: sources_by_hash[key] for key in sorted(needed)}, actions,
        tuple(plan) if FOLLOW in config.options else (), (), rewards,
    )  # fmt: skip
    space = ActionSpace(
        world.action_nvec, noop_of(world), primitive_mask(world, config.primitives), slots, programs,
        only_in_trouble=config.recovery.only_in_trouble, primitive_steps=config.primitive_steps,
    )  # fmt: skip
    space.require_actions()
    uninterruptible = frozenset(option.source_hash for option in options if option.uninterruptible)
    space = space.with_uninterruptible(uninterruptible)
    if config.recovery.share and (space.follow < 0 or not world.restorable):
        raise ConfigError("Recovery training needs follow_plan among the options, and a world that can be restored.")
    if config.branches.decisions and not world.restorable:
        raise ConfigError("Branches need a world that can be restored.")
    observation = build_observation(world, config.observation, RewardStream(config.reward, world))
    return Setup(
        world, task, config, space, observation, _target(task, config.target), min(config.horizon, task.horizon)
    )


def require_known_names(config: RlConfigReply, fields: Collection[str], world: World, task: str) -> None:
    """Raises ConfigError, ActionSpaceError, ObservationError, RewardError or WorldFailed where a field names
    what the world does not have. Options are known only once they are accepted."""
    reward = RewardStream(config.reward, world)
    if "observation" in fields:
        build_observation(world, config.observation, reward)
    if "primitives" in fields:
        primitive_mask(world, config.primitives)
    if "target" in fields:
        _target(world.tasks[task], config.target)


def require_affordable(setup: Setup, env_steps: int) -> None:
    """Raises ConfigError where a rollout of a training of so many env steps could exhaust the memory, or its branches
    the budget."""
    hyper, branches = setup.config.hyperparameters, setup.config.branches
    rollout = min(hyper.n_steps * hyper.n_envs, env_steps)
    row = setup.observation.size * np.dtype(setup.observation.dtype).itemsize + sum(setup.space.sizes)
    size = 2 * rollout * row  # as it is collected, and in one piece
    if size > MOST_BYTES:
        raise ConfigError(
            f"A rollout of {rollout} env steps (n_steps * n_envs) may take {size >> 20} MB of memory, and "
            f"{MOST_BYTES >> 20} are allowed: at most {MOST_BYTES // (2 * row)} env steps."
        )
    played = branches.decisions * 2 * branches.repeats * branches.env_steps
    if played > MOST_BRANCHES * env_steps:
        raise ConfigError(
            f"The branches of a rollout may take {played} env steps (decisions * 2 * repeats * env_steps), and a "
            f"quarter of the training's {env_steps} is allowed."
        )


def _target(task: Task, target: str) -> str:
    goal = task.milestones[-1] if task.milestones else ""
    if target in ("", "success", task.id) or (target == goal and task.kind == "goal"):
        return ""
    if task.kind == "score":
        raise ConfigError(f"The task {task.id} counts every milestone: its target is {task.id}, not {target!r}.")
    if target not in task.milestones:
        known = ", ".join(task.milestones) or "none"
        raise ConfigError(f"The task {task.id} has no milestone {target!r} to train for; it has: {known}.")
    return target
