"""An episode is the same however many lanes share the host and wherever the envs compute, also where `available` draws
random numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rlgpt.agents.contracts import RewardTerm
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.observation import Observation
from rlgpt.training.options.policies import UniformPolicy
from rlgpt.training.options.slots import ActionSpace, CodedAction, build_slots, noop_of
from rlgpt.training.rollouts.evaluation import evaluate
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.protocol import World
from tests.options.toys import ChangedWorld
from tests.worlds.elsewhere import elsewhere

LANES = (1, 3, 8, 16)
SEEDS = [episode_seed(3, "dev", index) for index in range(16)]
SOURCE = """
def available(view):
    return rng.random() < 0.5


def wander(view):
    for _ in range(rng.randint(1, 4)):
        view = yield rng.choice({ways})
"""


@dataclass
class Uniform:
    """A policy that draws among the actions that are available."""

    space: ActionSpace
    terms: tuple[RewardTerm, ...] = (RewardTerm(term="task", weight=1.0),)
    observation: Observation | None = None
    chosen: list[str] = field(default_factory=list)

    def chooser(self, space: ActionSpace, best: bool) -> Any:
        return UniformPolicy(space)


@pytest.mark.parametrize(("name", "task"), [("corridor", "take_coin"), ("crafter", "crafter_score")])
def test_episodes_do_not_depend_on_the_lanes(name: str, task: str) -> None:
    world: World = ChangedWorld() if name == "corridor" else registry.get(name)
    source = SOURCE.format(ways=tuple(primitive.name for primitive in world.primitives[:3]))
    slow = type("Slow", (type(world),), {"slow": True, "reset_steps": 30})()
    host = open_host(world, lanes=max(LANES), mode="locked", seed=5)
    try:
        said = host.admit("action", source)
        assert said.admitted, said.message
        option = CodedAction(said.name, source, has_available=True)
        slots, actions = build_slots([option], (), max_option_steps=8, follow_plan=False)
        primitives = np.ones(world.action_nvec[0], np.bool_)
        space = ActionSpace(world.action_nvec, noop_of(world), primitives, slots)
        programs = type(space.programs)({said.source_hash: source}, actions)
        policy = Uniform(ActionSpace(world.action_nvec, noop_of(world), primitives, slots, programs))
        played = [
            evaluate(place, task, policy, host, SEEDS, horizon=60, record_actions=True, n_envs=lanes).episodes
            for place in (world, elsewhere(world), elsewhere(slow))
            for lanes in LANES
        ]
    finally:
        host.close()
    assert all(episodes == played[0] for episodes in played[1:])
    assert sum(episode.usage.get(option.name, 0) for episode in played[0]) > 10, "the option was never used"
