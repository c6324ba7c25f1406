"""Builds the row of an RL configuration, and sets what the arms of an experiment share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from rlgpt.agents.contracts import RewardTerm, RlConfigAsked, RlConfigReply
from rlgpt.agents.operator_fields import with_operators
from rlgpt.store import tables
from rlgpt.store.history import IterationState
from rlgpt.store.settings import MethodSettings, Observation
from rlgpt.training.options.observation import PIXELS
from rlgpt.training.options.slots import FOLLOW


def config_row(
    iteration: IterationState, revision: int, author: str, config: Mapping[str, Any], note: str
) -> tables.RlConfig:
    text = json.dumps(config, sort_keys=True)
    return tables.RlConfig(
        sub_task=iteration.sub_task,
        iteration=iteration.number,
        revision=revision,
        author=author,
        config=dict(config),
        config_hash=hashlib.blake2b(text.encode(), digest_size=8).hexdigest(),
        note=note,
    )


def with_own_reward(reply: RlConfigAsked, source_hash: str) -> RlConfigReply:
    """The configuration with the hash of its own reward function in place; without one that term is left out."""
    fields = reply.model_dump(mode="json", exclude={"reward_source"})
    terms = [term for term in fields["reward"] if source_hash or term["term"] != "generated" or term["argument"]]
    for term in terms:
        if term["term"] == "generated":
            term["argument"] = term["argument"] or source_hash
    return RlConfigReply.model_validate(fields | {"reward": terms or [{"term": "task", "weight": 1.0}]})


def observed(reply: RlConfigReply, observation: Observation) -> RlConfigReply:
    """The configuration with the world's picture in place of features, where the session was asked for that."""
    return reply.model_copy(update={"observation": [PIXELS]}) if observation == "pixels" else reply


def shared_by_arms(
    reply: RlConfigReply, method: MethodSettings, env_steps_left: int, passes: int, scored: bool = False
) -> RlConfigReply:
    """The configuration with what an experiment's arms must share in place of what the fast agent chose.

    `passes`: of the outer loop that may still train, this one included. `scored`: whether the result is a score.
    Raises UnusableFields.
    """
    shared: dict[str, Any] = {}
    if method.reward != "designed":
        term: Literal["task", "world"] = "task" if method.reward == "success" and not scored else "world"
        shared["reward"] = [RewardTerm(term=term, weight=1.0)]
    if method.whole_budget:
        share = env_steps_left if passes == 1 else min(reply.env_steps, env_steps_left // passes)
        shared["env_steps"] = min(share, 100_000_000)
    settings = dict(method.rl)
    if FOLLOW not in reply.options:
        settings.pop("recovery", None)  # there is no plan yet that could fail
    return with_operators(reply.model_copy(update=shared), settings)
