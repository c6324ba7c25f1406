"""What a run takes over from another, and what it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.ppo.checkpoints import unpack
from rlgpt.training.ppo.run import TrainResult, train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import evaluate
from rlgpt.training.seeds import episode_seed
from tests.options.toys import BACK, USE, WALK, ChangedWorld, code, configuration, host_of

WORLD = ChangedWorld()


def _train(options: list[str], sources: list[str], **more: Any) -> TrainResult:
    changes = more.pop("config", {})
    config = configuration(**{"options": options, "env_steps": 512} | changes)
    return train(WORLD, "take_coin", config, [code(s) for s in sources], host_of(WORLD), seed=1, device="cpu", **more)


def test_parameters_and_slots_are_taken_over_when_observation_and_network_are_equal() -> None:
    first = _train(["walk", "use_it"], [WALK, USE])
    second = _train(["use_it", "back"], [USE, BACK], warm=first.checkpoint, env_steps=0)
    assert second.start.warm
    assert [(s["slot"], s["name"], s["prior"]) for s in second.start.slots] == [(0, "back", 0.5), (1, "use_it", None)]
    old, new = unpack(first.checkpoint).arrays, unpack(second.checkpoint).arrays
    for name in (key for key in old if key.startswith("policy/") and "action_net" not in key):
        assert np.array_equal(old[name], new[name]), name
    kept = [0, 1, 2, 4]
    assert np.array_equal(old["policy/action_net.weight"][kept], new["policy/action_net.weight"][kept])
    assert not new["policy/action_net.weight"][3].any() and old["policy/action_net.weight"][3].any()


def test_rewritten_code_and_a_changed_plan_go_on_from_what_was_learnt_about_them() -> None:
    rewritten = WALK.replace("range(3)", "range(2)")
    plans = [(PlanItem("view.key", Action(source_hash(source))),) for source in (WALK, rewritten)]
    options = ["walk", "use_it", "follow_plan"]
    first = _train(options, [WALK, USE], plan=plans[0], config={"option_prior": 0.2, "plan_prior": 0.5})
    second = _train(options, [rewritten, USE], plan=plans[1], warm=first.checkpoint, env_steps=0)
    assert [s["prior"] for s in second.start.slots] == [None, None, None]
    before, after = (unpack(result.checkpoint) for result in (first, second))
    keys = [[slot["key"] for slot in saved.fields["slots"]] for saved in (before, after)]
    assert [a == b for a, b in zip(*keys, strict=True)] == [False, False, True]
    old, new = before.arrays, after.arrays
    assert np.array_equal(old["policy/action_net.weight"], new["policy/action_net.weight"])
    assert np.array_equal(old["policy/action_net.bias"], new["policy/action_net.bias"])
    assert all(np.array_equal(old[name], new[name]) for name in old if name.startswith("adam/"))


def test_another_observation_starts_fresh() -> None:
    first = _train(["walk"], [WALK])
    second = _train(["walk"], [WALK], warm=first.checkpoint, env_steps=0, config={"observation": ["position"]})
    assert not second.start.warm
    assert second.start.slots[0]["prior"] == 0.5


def test_zero_env_steps_give_the_priors_alone() -> None:
    result = _train(["walk", "use_it"], [WALK, USE], env_steps=0, config={"option_prior": 0.8})
    policy = load_policy(result.checkpoint, WORLD)
    seeds = [episode_seed(1, "dev", i) for i in range(1000)]
    first = evaluate(WORLD, "take_coin", policy, host_of(WORLD), seeds, variant="prior", horizon=1)
    assert result.updates == 0
    assert 1 - first.option_usage["primitive"] / 1000 == pytest.approx(0.8, abs=0.03)


def test_imitated_decisions_of_a_changed_source_are_dropped() -> None:
    config = {"self_imitation": {"mode": "oh2018"}}
    first = _train(["walk", "use_it"], [WALK, USE], config=config)
    changed = WALK.replace("range(3)", "range(2)")
    second = _train(["walk", "use_it"], [changed, USE], warm=first.checkpoint, env_steps=0, config=config)
    before, after = (unpack(r.checkpoint).arrays["imitation/actions"][:, 0] for r in (first, second))
    assert 3 in before and 4 in before
    assert 3 not in after and 4 in after
