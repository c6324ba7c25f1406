"""How the loss of an update is computed: eagerly, or compiled by torch.compile.

Compiled takes half a minute once for a shape of network and minibatch, two seconds from its cache afterwards, and
gives other last bits than eager: a session says which it uses and keeps to it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import platformdirs
import torch as th
from torch.nn import functional

from rlgpt.training.ppo.policy import OptionPolicy

Loss = Callable[..., tuple[th.Tensor, th.Tensor]]
"""(observations, masks, actions, old_log_prob, advantages, returns) of a minibatch -> loss, and five numbers of the
report: KL, clip fraction, entropy, policy loss, value loss."""
COMPILERS = ("g++", "clang++", "c++")


class KernelError(ValueError):
    """The wanted kernel cannot be had here; the sentence is the argument."""


def make_loss(policy: OptionPolicy, clip: float, entropy: float, value: float, kernel: str) -> Loss:
    """The clipped surrogate with value and normalised entropy. `kernel`: eager | compiled. Raises KernelError."""

    def loss(
        observations: th.Tensor, masks: th.Tensor, actions: th.Tensor, old: th.Tensor, advantages: th.Tensor,
        returns: th.Tensor,
    ) -> tuple[th.Tensor, th.Tensor]:  # fmt: skip
        values, log_prob, entropies = policy.evaluate_masked(observations, masks, actions)
        if len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        log_ratio = log_prob - old
        ratio = log_ratio.exp()
        policy_loss = -th.min(advantages * ratio, advantages * ratio.clamp(1 - clip, 1 + clip)).mean()
        value_loss = functional.mse_loss(returns, values)
        entropy_mean = entropies.mean()
        with th.no_grad():
            divergence = (ratio - 1 - log_ratio).mean()
            outside = ((ratio - 1).abs() > clip).float().mean()
            report = th.stack((divergence, outside, entropy_mean, policy_loss, value_loss))
        return policy_loss - entropy * entropy_mean + value * value_loss, report

    if kernel != "compiled":
        return loss
    if not os.environ.get("CXX") and not any(map(shutil.which, COMPILERS)):
        raise KernelError("The compiled kernel needs a C++ compiler (g++ or clang++), and this machine has none.")
    cache = Path(platformdirs.user_cache_dir("rlgpt")) / "torch"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache))
    compiled: Loss = th.compile(loss, dynamic=False)
    return compiled
