"""The joint action distribution over masked heads (method.md, "Coded actions as options").

The first head holds primitives and options; the other heads matter only under a primitive:
log pi(a) = log pi1(a1) + 1[a1 primitive] sum_h log pi_h(a_h), H = H1 + P1(primitive) sum_h H_h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch as th

NEVER = -1e9
"""Logit of a masked action: its probability is exactly 0 in float32."""


@dataclass(frozen=True)
class JointActions:
    """Sizes of the heads and how many entries of the first are primitives."""

    sizes: tuple[int, ...]
    primitives: int

    def evaluate(self, logits: th.Tensor, mask: th.Tensor, actions: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Log probability and normalised entropy in [0, 1], each (n,).

        logits, mask: (n, sum(sizes)); actions: (n, heads) int64. Entropy is divided by the log of the number
        of valid joint actions, and is 0 where only one is valid.
        """
        masked = logits.masked_fill(~mask, NEVER)
        if len(self.sizes) == 1:
            log_p = th.log_softmax(masked, dim=1)
            chosen = log_p.gather(1, actions[:, :1]).squeeze(1)
            entropy = -(log_p.exp() * log_p).sum(1)
            count = mask.sum(1)
            return chosen, entropy / _log_count(count)
        parts = th.split(masked, list(self.sizes), dim=1)
        valid = th.split(mask, list(self.sizes), dim=1)
        log_first = th.log_softmax(parts[0], dim=1)
        chosen = log_first.gather(1, actions[:, :1]).squeeze(1)
        p_first = log_first.exp()
        entropy = -(p_first * log_first).sum(1)
        primitive = (actions[:, 0] < self.primitives).to(logits.dtype)
        share = p_first[:, : self.primitives].sum(1)
        joint = valid[0][:, : self.primitives].sum(1)
        for head, (part, legal) in enumerate(zip(parts[1:], valid[1:], strict=True), start=1):
            log_p = th.log_softmax(part, dim=1)
            chosen = chosen + primitive * log_p.gather(1, actions[:, head : head + 1]).squeeze(1)
            entropy = entropy - share * (log_p.exp() * log_p).sum(1)
            joint = joint * legal.sum(1)
        return chosen, entropy / _log_count(joint + valid[0][:, self.primitives :].sum(1))

    def divergence(self, logits: th.Tensor, others: th.Tensor, mask: th.Tensor) -> th.Tensor:
        """(n,) KL divergence of the distribution with `logits` from the one with the logits `others`, in nats:
        KL = KL1 + P1(primitive) sum_h KL_h."""
        parts = th.split(logits.masked_fill(~mask, NEVER), list(self.sizes), dim=1)
        theirs = th.split(others.masked_fill(~mask, NEVER), list(self.sizes), dim=1)
        kls = []
        for part, other in zip(parts, theirs, strict=True):
            log_p = th.log_softmax(part, dim=1)
            kls.append((log_p.exp() * (log_p - th.log_softmax(other, dim=1))).sum(1))
        if len(kls) == 1:
            return kls[0]
        share = parts[0].softmax(1)[:, : self.primitives].sum(1)
        return kls[0] + share * th.stack(kls[1:]).sum(0)

    def others_mass(self, logits: th.Tensor, mask: th.Tensor, new: Sequence[int]) -> th.Tensor:
        """(n,) logsumexp of the valid first-head logits but for the entries `new`; -inf where none is."""
        first = mask[:, : self.sizes[0]].clone()
        first[:, list(new)] = False
        return logits[:, : self.sizes[0]].masked_fill(~first, -th.inf).logsumexp(1)


def _log_count(count: th.Tensor) -> th.Tensor:
    return count.clamp(min=2).to(th.float32).log()
