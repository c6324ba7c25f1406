"""Both self-imitation modes: what they keep and what they learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th

from rlgpt.training.ppo.imitation import OhImitation, PaperImitation, Trajectory, make_imitation
from rlgpt.training.ppo.ppo import OptionPPO
from rlgpt.training.ppo.setup import build_setup
from tests.options.toys import ChangedWorld, configuration


def _ppo() -> OptionPPO:
    setup = build_setup(ChangedWorld(), "take_key", configuration(), [], [], {}, [])
    return OptionPPO(setup.space, setup.observation, setup.config.hyperparameters, seed=1, device="cpu")


def _trajectory(ppo: OptionPPO, actions: list[int], rewards: list[float]) -> Trajectory:
    trajectory = Trajectory()
    for action, reward in zip(actions, rewards, strict=True):
        observation = np.zeros(ppo.space.total, np.float32)[: ppo.policy.layout.size]
        trajectory.add(observation, ppo.space.static_mask(), (action,), reward, 0.5)
    return trajectory


def _probability(ppo: OptionPPO, action: int) -> float:
    observation = th.zeros(1, ppo.policy.layout.size)
    mask = th.tensor(ppo.space.static_mask())[None]
    return float(ppo.policy.evaluate_masked(observation, mask, th.tensor([[action]]))[1].detach().exp())


def test_smdp_returns_of_a_trajectory() -> None:
    assert _trajectory(_ppo(), [0, 1, 2], [1.0, 2.0, 4.0]).returns().tolist() == [1 + 0.5 * (2 + 0.5 * 4), 4.0, 4.0]


def test_paper_keeps_successes_and_returns_two_deviations_above_the_mean() -> None:
    ppo, paper = _ppo(), PaperImitation(1.0, np.random.default_rng(0))

    def finish(success: bool, total: float) -> bool:
        before = len(paper.trajectories)
        paper.pending[0] = _trajectory(ppo, [1], [total])
        paper.finish(0, success, total)
        return len(paper.trajectories) > before

    assert finish(False, 1.0)  # a beginning
    assert finish(True, 3.0)
    assert paper.threshold() == pytest.approx(2 + 2 * 1)
    assert not finish(False, 3.9)
    assert finish(False, 4.1)
    assert finish(True, -5.0)
    assert 0 not in paper.pending


def test_paper_is_first_in_first_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ppo, paper = _ppo(), PaperImitation(1.0, np.random.default_rng(0))
    for total in range(505):
        paper.pending[0] = _trajectory(ppo, [1], [total])
        paper.finish(0, True, total)
    assert [total for total, _ in paper.trajectories] == list(range(5, 505))


def test_paper_learns_every_hundredth_update_and_makes_the_kept_actions_likelier() -> None:
    ppo, paper = _ppo(), PaperImitation(1.0, np.random.default_rng(0))
    paper.pending[0] = _trajectory(ppo, [2] * 1500, [0.0] * 1500)
    paper.finish(0, True, 1.0)
    before = _probability(ppo, 2)
    assert paper.update(ppo.policy, 99, 0.5) == 0 and _probability(ppo, 2) == before
    assert paper.update(ppo.policy, 100, 0.5) == 2
    assert _probability(ppo, 2) > before


def test_oh_learns_only_from_returns_above_the_value() -> None:
    for reward, likelier in ((50.0, True), (-50.0, False)):
        ppo, oh = _ppo(), OhImitation(1.0, np.random.default_rng(0))
        oh.pending[0] = _trajectory(ppo, [2], [reward])
        oh.finish(0, False, reward)
        before = _probability(ppo, 2)
        assert oh.update(ppo.policy, 1, 0.5) == 4
        assert (_probability(ppo, 2) > before) == likelier


def test_decisions_of_a_changed_source_are_forgotten() -> None:
    ppo = _ppo()
    for imitation in (PaperImitation(1.0, np.random.default_rng(0)), OhImitation(1.0, np.random.default_rng(0))):
        imitation.pending[0] = _trajectory(ppo, [1, 3, 3, 2], [0.0] * 4)
        imitation.finish(0, True, 0.0)
        imitation.pending[1] = _trajectory(ppo, [3, 2], [0.0] * 2)
        imitation.drop([3])
        assert imitation.pending[1].actions == [(2,)]
        assert imitation.save()[1]["actions"].tolist() == [[1], [2]]


def test_none_is_none() -> None:
    assert make_imitation("none", 1.0, np.random.default_rng(0)) is None


@pytest.mark.parametrize("number", [3_999.0, 70_000.0])
def test_numbers_that_half_precision_has_not_are_kept_as_they_are(number: float) -> None:
    trajectory = Trajectory()
    for each in (number, 0.3):
        trajectory.add(np.array([each, 1.0], np.float32), np.ones(2, np.bool_), (0,), 1.0, 1.0)
    for kept in (trajectory, Trajectory.load(trajectory.save())):
        assert kept.observations[0][0] == number
        assert [row.dtype for row in kept.observations] == [np.float32, np.float16]
