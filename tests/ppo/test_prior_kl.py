"""The penalty on the distance from the policy before learning: it holds, it falls, and it is off unless asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as th

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.ppo.checkpoints import unpack
from rlgpt.training.ppo.ppo import OptionPPO
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import load_learner
from tests.options.toys import GET_KEY, USE, WALK, ChangedWorld, code, configuration, host_of

PLAN = (PlanItem("view.key", Action(source_hash(GET_KEY))),)


def _trained(prior_kl: float, **more: Any) -> bytes:
    world = ChangedWorld()
    config = configuration(
        options=["walk", "use_it", "follow_plan"], env_steps=512, prior_kl=prior_kl, hyper={"learning_rate": 3e-3}
    )
    return train(
        world, "take_key", config, [code(WALK), code(USE)], host_of(world), seed=3, device="cpu", plan=PLAN,
        sources={source_hash(GET_KEY): GET_KEY}, **more,
    ).checkpoint  # fmt: skip


def _distance(one: bytes, other: bytes) -> float:
    """Mean KL divergence over the last states of the first."""
    first, second = (load_learner(blob, ChangedWorld()) for blob in (one, other))
    recent = unpack(one).part("recent")
    rows, masks = th.as_tensor(recent["observations"]), th.as_tensor(recent["masks"])
    with th.no_grad():
        apart = first.policy.joint.divergence(first.policy.logits(rows), second.policy.logits(rows), masks)
    return float(apart.mean())


def test_the_policy_stays_nearer_to_what_it_was() -> None:
    before = _trained(0.0, env_steps=0)
    free, held = _trained(0.0), _trained(10.0)
    assert _distance(held, before) < 0.3 * _distance(free, before)


def test_the_weight_falls_to_0_over_the_run_also_after_a_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[float] = []
    update = OptionPPO.train

    def watched(ppo: OptionPPO, keep_going: Callable[[], bool]) -> Any:
        weights.append(ppo.prior_kl)
        return update(ppo, keep_going)

    monkeypatch.setattr(OptionPPO, "train", watched)
    _trained(2.0)
    assert len(weights) >= 4 and weights == sorted(weights, reverse=True)
    assert weights[0] == pytest.approx(2.0 * 3 / 4, abs=0.05) and weights[-1] < 0.05


def test_a_run_that_goes_on_from_another_is_held_near_to_that() -> None:
    first = _trained(0.0)
    second = _trained(10.0, warm=first)
    kept = unpack(second).part("prior")
    for name, array in unpack(first).part("policy").items():
        assert np.array_equal(kept[name], array), name


def test_without_it_nothing_is_kept() -> None:
    assert not unpack(_trained(0.0)).part("prior")
