"""What cannot work is one clear sentence, or goes on."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from rlgpt.training.options.observation import ObservationError
from rlgpt.training.options.observer import Observer
from rlgpt.training.options.rewards import RewardError
from rlgpt.training.options.slots import ActionSpaceError
from rlgpt.training.ppo.device import choose_device
from rlgpt.training.ppo.machine import MachineLacks
from rlgpt.training.ppo.run import train
from rlgpt.training.worlds.protocol import StepResult, WorldFailed
from tests.options.toys import FAILS, NONSENSE, ChangedEnv, ChangedWorld, code, configuration, host_of, term


def test_an_option_that_always_fails_costs_noops_and_training_goes_on() -> None:
    world = ChangedWorld()
    config = configuration(options=["fails", "nonsense"], primitives=[])
    result = train(world, "take_key", config, [code(FAILS), code(NONSENSE)], host_of(world), seed=1, device="cpu")
    assert result.state == "finished" and result.env_steps == result.decisions >= 256


def test_an_empty_action_set_is_refused() -> None:
    world = ChangedWorld()
    with pytest.raises(ActionSpaceError, match="allows no primitive and no accepted coded action"):
        train(world, "take_key", configuration(primitives=[]), [], host_of(world), seed=1, device="cpu")


def test_a_reward_that_is_not_a_number_stops_the_run() -> None:
    world = ChangedWorld(lambda env, command, result: StepResult(float("nan"), False, False))
    with pytest.raises(RewardError, match="The reward term world gave nan at step 1 of an episode"):
        train(world, "take_key", configuration(reward=[term("world")]), [], host_of(world), seed=1, device="cpu")


def test_an_observation_that_changes_shape_stops_the_run() -> None:
    world = ChangedWorld(shrink_at=5)
    sentence = r"an array of shape \(3,\) at step 5 of an episode of take_key; \(4,\) was expected"
    with pytest.raises(WorldFailed, match=sentence):
        train(world, "take_key", configuration(), [], host_of(world), seed=1, device="cpu")


def test_an_observation_that_is_no_array_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangedEnv, "observe", lambda env: [0.0, 0.0, 0.0, 0.0])
    sentence = r"The world observed a list and no array at step 0 of an episode of take_key; \(4,\) was expected"
    with pytest.raises(WorldFailed, match=sentence):
        train(ChangedWorld(), "take_key", configuration(), [], host_of(ChangedWorld()), seed=1, device="cpu")


@pytest.mark.parametrize("category", [-1.0, 4.0])
def test_a_category_that_is_none_stops_the_run(category: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangedEnv, "observe", lambda env: np.array([category], np.float32))
    with pytest.raises(WorldFailed, match=f"cell = {category:.0f}, which has the categories 0 to 3"):
        config = configuration(observation=["cell"])
        train(ChangedWorld(), "take_key", config, [], host_of(ChangedWorld()), seed=1, device="cpu")


class Filmed(Observer):
    films = True


def test_a_frame_that_is_no_bytes_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangedEnv, "frame", lambda env: None)
    world = ChangedWorld()
    with pytest.raises(WorldFailed, match=r"The world's frame\(\) is a NoneType and no bytes"):
        train(world, "take_key", configuration(), [], host_of(world), seed=1, device="cpu", observer=Filmed())


def test_unknown_features_and_missing_pixels_are_refused() -> None:
    world = ChangedWorld()
    with pytest.raises(ObservationError, match="no feature 'smell'"):
        train(world, "take_key", configuration(observation=["smell"]), [], host_of(world), seed=1, device="cpu")
    world.pixel_shape = None  # type: ignore[assignment]
    with pytest.raises(ObservationError, match="has no pixel observation"):
        train(world, "take_key", configuration(observation=["pixels"]), [], host_of(world), seed=1, device="cpu")


@pytest.mark.parametrize(("low", "high"), [(-inf, inf), (0.0, inf), (0.0, 0.0)])
def test_a_feature_that_no_network_can_take_in_stops_the_run(low: float, high: float) -> None:
    world = ChangedWorld()
    position = replace(world.features["position"], low=low, high=high)
    world.features = {**world.features, "position": position}  # type: ignore[misc]
    sentence = f"The world corridor cannot be learnt: feature 'position' has the range {low} to {high}, and"
    with pytest.raises(WorldFailed, match=sentence):
        train(world, "take_key", configuration(), [], host_of(world), seed=1, device="cpu")


def test_the_device_is_explained() -> None:
    assert choose_device("auto", False).name == "cpu"
    assert "faster on the CPU" in choose_device("auto", False).explanation
    with pytest.raises(ValueError, match="auto, cpu or cuda, not 'tpu'"):
        choose_device("tpu", False)


def test_cuda_is_taken_for_pixels_where_it_is_and_refused_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert choose_device("auto", True).name == "cpu"
    with pytest.raises(MachineLacks, match="no CUDA device"):
        choose_device("cuda", False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda index: "a GPU")
    assert choose_device("auto", True) == ("cuda", "A policy on pixels: its convolutions are faster on a GPU.")
    assert choose_device("auto", False).name == "cpu"


@pytest.mark.parametrize(
    "mask", [np.ones(2, np.bool_), np.ones(4, np.bool_), np.ones(3, np.int8), None, [True, True, True]]
)
def test_a_mask_that_is_none_is_the_fault_of_the_world(mask: object, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ChangedEnv.action_masks
    monkeypatch.setattr(ChangedEnv, "action_masks", lambda env: mask if env.steps >= 5 else whole(env))
    world = ChangedWorld()
    sentence = r"action_masks\(\) gave .* at step 5 of an episode of take_coin; an array of bool of the shape \(3,\)"
    with pytest.raises(WorldFailed, match=sentence):
        train(world, "take_coin", configuration(), [], host_of(world), seed=1, device="cpu")


def test_commands_that_cannot_be_recorded_are_refused_before_any_env_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangedWorld, "native_action", lambda world, action: (int(action[0]) + 40_000,))
    world = ChangedWorld()
    with pytest.raises(WorldFailed, match=r"native_action\(\) gives \(40000,\); a tuple of 1 plain ints"):
        train(world, "take_coin", configuration(), [], host_of(world), seed=1, device="cpu")
