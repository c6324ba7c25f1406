"""A trained policy from the bytes of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlgpt.agents.contracts import RewardTerm, RlConfigReply
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.observation import Observation, build_observation
from rlgpt.training.options.policies import draw, greedy
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.runner import Chooser
from rlgpt.training.options.slots import ActionSpace
from rlgpt.training.ppo.checkpoints import CheckpointError, load_module, load_optimizer, unpack
from rlgpt.training.ppo.policy import Actor, network_hash
from rlgpt.training.ppo.ppo import OptionPPO
from rlgpt.training.ppo.saved import load_space
from rlgpt.training.worlds.protocol import World


class TrainedPolicy:
    """Plays one row at a time, so that an episode does not depend on what runs beside it."""

    def __init__(self, space: ActionSpace, observation: Observation, terms: Sequence[RewardTerm], actor: Actor) -> None:
        self.space, self.observation, self.terms = space, observation, terms
        self._actor = actor

    def chooser(self, space: ActionSpace, best: bool) -> Chooser:
        return _Chooser(self._actor, space, best)


class _Chooser:
    def __init__(self, actor: Actor, space: ActionSpace, best: bool) -> None:
        self._actor, self._space, self._best = actor, space, best

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        return [self._one(lane) for lane in lanes]

    def _one(self, lane: Lane) -> tuple[int, ...]:
        assert lane.observation is not None and lane.mask is not None
        row = self._actor.logits(lane.observation[np.newaxis])[0]
        if self._best:
            return greedy(row, lane.mask, self._space)
        return draw(row, lane.mask, self._space, lane.rng)


def load_policy(blob: bytes, world: World) -> TrainedPolicy:
    """Raises CheckpointError when the checkpoint belongs to another world or network."""
    ppo = load_learner(blob, world)
    config = RlConfigReply.model_validate(unpack(blob).fields["config"])
    return TrainedPolicy(ppo.space, ppo.policy.layout, config.reward, Actor(ppo.policy))


def load_learner(blob: bytes, world: World, device: str = "cpu") -> OptionPPO:
    """The learner with its parameters and moments. Raises CheckpointError as `load_policy` does."""
    saved = unpack(blob)
    if saved.fields["world"] != world.name:
        raise CheckpointError(f"This checkpoint is of the world {saved.fields['world']}, not {world.name}.")
    config = RlConfigReply.model_validate(saved.fields["config"])
    stream = RewardStream(config.reward, world)
    observation = build_observation(world, config.observation, stream)
    space = load_space(saved.fields, world, config)
    ppo = OptionPPO(space, observation, config.hyperparameters, seed=0, device=device)
    if network_hash(ppo.policy) != saved.fields["network"]:
        raise CheckpointError("This checkpoint's network does not fit the world's observation any more.")
    load_module(ppo.policy, saved.part("policy"))
    load_optimizer(ppo.policy, ppo.policy.optimizer, saved.part("adam"))
    return ppo
