"""New slots get their prior; nothing else of the policy moves."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch as th

from rlgpt.training.options.slots import ActionSpaceError, Slot, shares
from rlgpt.training.ppo.ppo import OptionPPO
from rlgpt.training.ppo.priors import TRIED_AGAIN, activate, try_again
from rlgpt.training.ppo.setup import build_setup
from tests.options.toys import WALK, ChangedWorld, code, configuration

STATES = 200


@pytest.fixture
def trained() -> tuple[OptionPPO, np.ndarray, np.ndarray]:
    """A policy with logits that differ between states, and Adam moments, as after training."""
    world = ChangedWorld()
    setup = build_setup(world, "take_coin", configuration(options=["walk"]), [code(WALK)], [], {}, [])
    ppo = OptionPPO(setup.space, setup.observation, setup.config.hyperparameters, seed=1, device="cpu")
    draw = np.random.default_rng(0)
    observations = draw.random((STATES, setup.observation.size)).astype(np.float32)
    observations[:, 1] = draw.integers(0, 4, STATES)
    masks = np.tile(setup.space.static_mask(), (STATES, 1))
    with th.no_grad():
        ppo.policy.action_net.weight.normal_(0, 0.2, generator=th.Generator().manual_seed(0))
    for _ in range(3):
        values, log_prob, _ = ppo.policy.evaluate_masked(
            th.tensor(observations), th.tensor(masks), th.zeros(STATES, 1, dtype=th.int64)
        )
        ppo.policy.optimizer.zero_grad()
        (values.mean() - log_prob.mean()).backward()
        ppo.policy.optimizer.step()
    return ppo, observations, masks


def _probabilities(ppo: OptionPPO, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
    with th.no_grad():
        logits = ppo.policy.logits(th.tensor(observations)).masked_fill(~th.tensor(masks), -th.inf)
        return th.softmax(logits, 1).numpy()


@pytest.mark.parametrize("prior", [0.05, 0.5, 0.9])
def test_a_group_of_new_slots_gets_its_prior_and_the_others_keep_their_proportions(
    trained: tuple[OptionPPO, np.ndarray, np.ndarray], prior: float
) -> None:
    ppo, observations, masks = trained
    before = _probabilities(ppo, observations, masks)
    value = ppo.policy.values(th.tensor(observations)).detach().numpy()
    opened = masks.copy()
    opened[:, [3 + 5, 3 + 6]] = True
    activate(ppo.policy, 3, {5: prior / 2, 6: prior / 2}, observations, opened)
    after = _probabilities(ppo, observations, opened)
    group = after[:, [8, 9]].sum(1)
    assert group.mean() == pytest.approx(prior, abs=0.01)
    assert after[:, 8] == pytest.approx(after[:, 9])
    rest = np.delete(after, [8, 9], 1) / (1 - group)[:, None]
    assert rest == pytest.approx(np.delete(before, [8, 9], 1), abs=1e-6)
    assert np.array_equal(ppo.policy.values(th.tensor(observations)).detach().numpy(), value)


def test_only_the_new_rows_lose_their_optimizer_moments(trained: tuple[OptionPPO, np.ndarray, np.ndarray]) -> None:
    ppo, observations, masks = trained
    weight = ppo.policy.action_net.weight
    before = {k: v.clone() for k, v in ppo.policy.optimizer.state[weight].items()}
    assert before["exp_avg"][3].abs().sum() > 0
    activate(ppo.policy, 3, {0: 0.5}, observations, masks)
    after = ppo.policy.optimizer.state[weight]
    assert weight[3].abs().sum() == 0
    for name in ("exp_avg", "exp_avg_sq"):
        assert after[name][3].abs().sum() == 0
        assert th.equal(after[name][[0, 1, 2]], before[name][[0, 1, 2]])
    assert after["step"] == before["step"]


def test_rewritten_code_that_was_left_alone_is_tried_again_where_it_would_have_been_chosen_first(
    trained: tuple[OptionPPO, np.ndarray, np.ndarray],
) -> None:
    ppo, observations, masks = trained
    bias = ppo.policy.action_net.bias

    def log_odds() -> np.ndarray:
        chosen = _probabilities(ppo, observations, masks)[:, 3].astype(np.float64)
        return np.log(chosen / (1 - chosen))

    before = log_odds()
    try_again(ppo.policy, 3, [0], observations, masks)
    assert np.array_equal(log_odds(), before)  # it was chosen often enough
    with th.no_grad():
        bias[3] -= 20
    others = _probabilities(ppo, observations, masks)[:, :3]
    try_again(ppo.policy, 3, [0], observations, masks)
    after = log_odds()
    assert after.mean() == pytest.approx(log(TRIED_AGAIN / (1 - TRIED_AGAIN)), abs=1e-3)
    assert after - after.mean() == pytest.approx(before - before.mean(), abs=1e-3)
    left = _probabilities(ppo, observations, masks)[:, :3]
    assert left / left.sum(1, keepdims=True) == pytest.approx(others / others.sum(1, keepdims=True), abs=1e-5)


def test_without_other_valid_actions_the_new_slots_keep_their_proportions(
    trained: tuple[OptionPPO, np.ndarray, np.ndarray],
) -> None:
    ppo, observations, masks = trained
    alone = np.zeros_like(masks)
    alone[:, [3, 4]] = True
    activate(ppo.policy, 3, {0: 0.2, 1: 0.4}, observations, alone)
    after = _probabilities(ppo, observations, alone)
    assert after[:, 4] == pytest.approx(2 * after[:, 3], rel=1e-4)


def _slot(name: str, similar: str = "") -> Slot:
    return Slot(name, name, name, 0, similar=similar)


def test_follow_plan_has_its_own_prior_and_similar_slots_share_one() -> None:
    slots = [_slot("follow_plan"), _slot("a"), _slot("b", similar="a"), _slot("c"), None]
    got = shares(slots, [0, 1, 2, 3], 0.4, 0.3)
    assert got == pytest.approx({0: 0.3, 1: 0.1, 2: 0.1, 3: 0.2})
    assert shares(slots, [0, 1], 0.4, 0.0) == pytest.approx({0: 0.2, 1: 0.2})
    assert shares(slots, [], 0.4, 0.3) == {}


def test_priors_that_leave_nothing_for_the_rest_are_refused() -> None:
    with pytest.raises(ActionSpaceError, match="leave no probability"):
        shares([_slot("follow_plan"), _slot("a")], [0, 1], 0.6, 0.5)
