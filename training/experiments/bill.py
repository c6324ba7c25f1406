"""Estimates what an experiment costs before it starts: env steps, hours (from a measured rate) and USD."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlgpt.agents.contracts import Hyperparameters, RewardTerm, RlConfigReply, training_horizon
from rlgpt.agents.endpoint import endpoints
from rlgpt.store.calls import TOKENS_PER_CALL, usual_by_role
from rlgpt.store.errors import StoreError
from rlgpt.store.experiments import Planned
from rlgpt.store.folder import sessions
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings, stored

PROBE = 4_096
"""Env steps of PPO that are timed where no past session tells the rate."""
WARM_UP = 256
WORTH = 5_000
"""Env steps from which a past session says something about the rate."""
RECENT = 20


@dataclass(frozen=True)
class Rate:
    env_steps_per_second: float
    basis: str


def bill(left: Sequence[tuple[Planned, Settings, int]], jobs: int, rate: Rate) -> dict[str, Any]:
    """`left`: the sessions that are not finished, their settings and env steps already spent.

    Env steps are upper bounds: a session may end early. Evaluation is not charged, but takes time.
    """
    env_steps = sum((s.budget.env_steps or 0) - min(spent, s.budget.env_steps or 0) for _, s, spent in left)
    evaluated = sum(_evaluations(s) for _, s, _ in left)
    paid = [s for _, s, _ in left if s.llm.kind == "openai"]
    calls = sum(map(_calls, paid))
    usd, unpriced = 0.0, set()
    for s in paid:
        asked = endpoints(s.llm.model_dump(), None)
        for role, count in _calls_by_role(s).items():
            price = asked[role].price
            if price is None:
                unpriced.add(asked[role].model)
            else:
                usd += count * price.of(*TOKENS_PER_CALL)
    caps = [s.budget.cost for s in paid]
    return {
        "sessions": len(left),
        "env_steps": env_steps,
        "episodes_evaluated": evaluated,
        "jobs": jobs,
        "env_steps_per_second": round(rate.env_steps_per_second, 1),
        "rate_from": rate.basis,
        "hours": env_steps / rate.env_steps_per_second / min(jobs, max(1, len(left))) / 3600,
        "calls": calls,
        "usd": None if unpriced else round(usd, 2),
        "usd_at_most": None if None in caps else sum(cap for cap in caps if cap is not None),
        "unpriced": sorted(unpriced),
    }


def _calls(settings: Settings) -> int:
    return sum(_calls_by_role(settings).values())


def _calls_by_role(settings: Settings) -> dict[str, int]:
    loop = settings.loop
    each = usual_by_role(loop.inner, settings.critic, loop.candidates)
    return {role: (loop.iterations + 1) * count for role, count in each.items()}


def _evaluations(settings: Settings) -> int:
    """Episodes at most: dev in every iteration (sampled, greedily, the plan alone), and the test in all variants."""
    loop = settings.loop
    return (loop.iterations + 1) * 3 * (loop.dev_first + loop.dev_more) + loop.test_episodes * (
        5 + len(set(settings.method.controls) - {"plan"})
    )


def measured_rate(settings: Settings) -> Rate:
    """From the newest sessions of this world and kind of observation, everything included; else from a short PPO
    run."""
    steps = seconds = 0.0
    priced = 0
    for folder in reversed(sessions()[-RECENT:]):
        try:
            with Reader(folder) as reader:
                history = reader.history_at()
            alike = stored(history.session["settings"])
        except StoreError:
            continue  # one that cannot be read, or has settings of a newer version, says nothing about the rate
        if (alike.world, alike.observation) != (settings.world, settings.observation):
            continue
        if history.spent.env_steps >= WORTH and history.active > 0:
            steps, seconds, priced = steps + history.spent.env_steps, seconds + history.active, priced + 1
    if priced:
        return Rate(steps / seconds, f"{priced} past sessions, evaluation included")
    basis = f"{PROBE:,} env steps of PPO on primitives just now, without evaluation and options"
    return Rate(_probe(settings), basis)


def _probe(settings: Settings) -> float:
    from rlgpt.training.host.client.open_host import open_host
    from rlgpt.training.ppo.run import train
    from rlgpt.training.steps.config_rows import observed
    from rlgpt.training.worlds import registry

    world, task = registry.get(settings.world), settings.task
    config = RlConfigReply(
        target="", observation=list(world.default_features), reward=[RewardTerm(term="world", weight=1.0)],
        primitives=[p.name for p in world.primitives], options=[],
        horizon=training_horizon(world.tasks[task].horizon), env_steps=PROBE, hyperparameters=Hyperparameters(),
    )  # fmt: skip
    config = observed(config, settings.observation)
    host = open_host(world, lanes=config.hyperparameters.n_envs)
    try:
        train(world, task, config, (), host, seed=0, env_steps=WARM_UP)
        began = time.perf_counter()
        done = train(world, task, config, (), host, seed=0)
        return done.env_steps / (time.perf_counter() - began)
    finally:
        host.close()
