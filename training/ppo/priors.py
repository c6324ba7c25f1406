"""What a run does with slots whose action is new or was rewritten, without disturbing what the policy knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, log
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from rlgpt.training.ppo.policy import OptionPolicy

TRIED_AGAIN = 0.05
"""Least probability of rewritten code, which the policy may have learnt to leave alone as it was before."""


def activate(
    policy: OptionPolicy, primitives: int, shares: Mapping[int, float],
    observations: NDArray[Any], masks: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Set the rows of newly filled slots so that together they have their prior probability.

    `shares`: slot -> probability; observations and masks: (n, ...) states of the last rollout (or first states)
    with the new slots' mask set. Weights 0, bias = mean over the states of logsumexp(other valid logits)
    + log(p / (1 - sum of p)), optimizer rows 0: the others' relative probabilities and V do not change.
    """
    if not shares:
        return
    rows = [primitives + slot for slot in shares]
    with th.no_grad():
        logits = policy.logits(policy.rows(observations))
        mass = policy.joint.others_mass(logits, th.as_tensor(masks, device=policy.device), rows)
        finite = mass[mass.isfinite()]
        level = float(finite.mean()) - log(1 - fsum(shares.values())) if len(finite) else 0.0
        for row, share in zip(rows, shares.values(), strict=True):
            policy.action_net.weight[row] = 0.0
            policy.action_net.bias[row] = level + log(share)
        for parameter in (policy.action_net.weight, policy.action_net.bias):
            for name, value in policy.optimizer.state.get(parameter, {}).items():
                if name != "step":
                    value[rows] = 0.0


def try_again(
    policy: OptionPolicy, primitives: int, slots: Sequence[int], observations: NDArray[Any], masks: NDArray[np.bool_]
) -> None:
    """Raise the biases of slots whose action was rewritten until each has the probability TRIED_AGAIN by its mean log
    odds over the states. Their weights stay: where the earlier version was of use, this one most probably is too.

    With rows of zeros instead, a warm start on hinge_cabinet_blind2 with one of three steps rewritten, and so with
    another follow_plan, fell from 75 to 53 of 100 episodes; so it won 74.
    """
    rows = [primitives + slot for slot in slots]
    with th.no_grad():
        logits = policy.logits(policy.rows(observations))
        for row in rows:
            odds = logits[:, row] - policy.joint.others_mass(logits, th.as_tensor(masks, device=policy.device), [row])
            finite = odds[odds.isfinite()]
            if len(finite):
                least = log(TRIED_AGAIN / (1 - TRIED_AGAIN))
                policy.action_net.bias[row] += max(0.0, least - float(finite.mean()))
