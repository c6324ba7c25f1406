"""A run that is cut anywhere continues bit by bit from its last checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.options.film import FrameSnapshot
from rlgpt.training.options.lane import EpisodeResult
from rlgpt.training.options.observer import Observer, Signal
from rlgpt.training.ppo.checkpoints import CheckpointError, pack, unpack
from rlgpt.training.ppo.ppo import OptionPPO
from rlgpt.training.ppo.run import MOST_MINIBATCHES, TrainResult, train
from rlgpt.training.ppo.setup import ConfigError
from tests.options.toys import BACK, GET_KEY, USE, WALK, ChangedWorld, code, configuration, host_of, term
from tests.ppo.devices import DEVICES

SHAPING = "def reward(before, view):\n    return 0.1 * (view.position - before.position)\n"
OPTIONS = (code(WALK), code(USE), code(BACK))
PLAN = (PlanItem("view.key", Action(source_hash(GET_KEY))),)
SOURCES = {source_hash(GET_KEY): GET_KEY, source_hash(SHAPING): SHAPING}
WALL_CLOCK = ("rate",)


def _config(**changes: Any) -> Any:
    reward = [
        term("task"), term("distance", 0.1, "coin"), term("milestone", 0.5, "take_key"),
        term("generated", 0.2, source_hash(SHAPING)),
    ]  # fmt: skip
    options = ["walk", "use_it", "back", "follow_plan"]
    return configuration(reward=reward, options=options, env_steps=6 * 128, **changes)


class Log(Observer):
    films = True

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.checkpoints: list[bytes] = []
        self.filmed: list[Any] = []

    def on_update(self, metrics: dict[str, Any]) -> None:
        self.rows.append({key: value for key, value in metrics.items() if key not in WALL_CLOCK})

    def on_film(self, result: EpisodeResult, moments: list[FrameSnapshot]) -> None:
        self.filmed.append((result, moments))

    def on_checkpoint(self, blob: bytes, update: int, env_steps: int, kind: str) -> None:
        self.checkpoints.append(blob)


def _train(config: Any, observer: Observer, device: str = "cpu", **more: Any) -> TrainResult:
    world = ChangedWorld()
    return train(
        world, "take_coin", config, OPTIONS, host_of(world), seed=11, device=device, plan=PLAN, sources=SOURCES,
        observer=observer, **more,
    )  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"self_imitation": {"mode": "paper"}},
        {"self_imitation": {"mode": "oh2018"}},
        {"prior_kl": 0.5},
        {"primitive_steps": 3},
        {"recovery": {"share": 0.5}},
        {"branches": {"decisions": 3, "repeats": 2, "env_steps": 7}},
        {"recovery": {"share": 0.5, "only_in_trouble": True}, "prior_kl": 0.5, "self_imitation": {"mode": "oh2018"}},
    ],
    ids=repr,
)
def test_resuming_at_any_update_gives_the_same_rows_and_the_same_bytes(
    setting: dict[str, Any], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgpt.training.ppo.imitation.PASS_EVERY", 2)
    monkeypatch.setattr("rlgpt.training.ppo.run.FILM_EVERY", 2)
    config = _config(**setting)
    whole = Log()
    result = _train(config, whole, device)
    assert len(whole.checkpoints) >= 4
    assert len(whole.filmed) >= 2
    for cut, blob in enumerate(whole.checkpoints[:-1], start=1):
        rest = Log()
        again = _train(config, rest, device, resume=blob)
        assert rest.rows == whole.rows[cut:]
        assert rest.filmed == whole.filmed[len(whole.filmed) - len(rest.filmed) :]
        assert again.checkpoint == result.checkpoint


def test_an_abrupt_cut_inside_a_rollout_repeats_it_exactly() -> None:
    """As after kill -9: nothing but the last checkpoint is left."""

    class Killed(Exception):
        pass

    class Kill(Log):
        wake = 300 * MOST_MINIBATCHES

        def poll(self) -> Signal:
            if self.clock >= self.wake:
                raise Killed
            return "go"

    whole, cut, rest = Log(), Kill(), Log()
    result = _train(_config(), whole)
    with pytest.raises(Killed):
        _train(_config(), cut)
    assert 0 < len(cut.checkpoints) < len(whole.checkpoints) - 1
    again = _train(_config(), rest, resume=cut.checkpoints[-1])
    assert cut.rows + rest.rows == whole.rows
    assert again.checkpoint == result.checkpoint


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(device: str) -> None:
    world = ChangedWorld()
    first, second, other = (
        train(world, "take_key", configuration(), [], host_of(world), seed=s, device=device).checkpoint
        for s in (1, 1, 2)
    )
    assert first == second != other


@pytest.mark.parametrize(("signal", "state"), [("stop", "stopped"), ("supersede", "superseded")])
def test_a_signal_ends_the_rollout_at_the_next_decisions_and_leaves_a_checkpoint(
    signal: Signal, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgpt.training.ppo.run.POLL_SECONDS", 0.0)

    class Stop(Log):
        polls = 0

        def poll(self) -> Signal:
            self.polls += 1
            return signal if self.polls > 100 else "go"

    log = Stop()
    result = _train(_config(), log)
    assert result.state == state
    assert 0 < result.env_steps < 6 * 128
    assert log.checkpoints[-1] == result.checkpoint
    again = _train(_config(), Log(), resume=result.checkpoint)
    assert again.state == "finished" and again.env_steps >= 6 * 128


def test_a_pause_waits_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgpt.training.ppo.run.POLL_SECONDS", 0.0)
    monkeypatch.setattr("rlgpt.training.options.observer.PAUSE_POLL", 0.0)

    class Pause(Log):
        polls = 0

        def poll(self) -> Signal:
            self.polls += 1
            return "pause" if self.polls % 3 else "go"

    paused, free = Pause(), Log()
    assert _train(_config(), paused).checkpoint == _train(_config(), free).checkpoint
    assert paused.rows == free.rows


def test_a_world_that_cannot_be_restored_resumes_with_new_episodes() -> None:
    world = ChangedWorld()
    world.restorable = False
    log = Log()
    train(world, "take_key", configuration(), [], host_of(world), seed=1, device="cpu", observer=log)
    result = train(
        world, "take_key", configuration(), [], host_of(world), seed=1, device="cpu", resume=log.checkpoints[0]
    )
    assert result.env_steps >= 256 and "envs/0" not in unpack(result.checkpoint).arrays


def test_a_run_resumes_only_with_its_own_configuration() -> None:
    log = Log()
    _train(_config(), log)
    with pytest.raises(ConfigError, match="made with another configuration"):
        _train(_config(option_cap=5), Log(), resume=log.checkpoints[0])
    with pytest.raises(CheckpointError, match="another observation or network"):
        _train(_config(observation=["position"]), Log(), resume=log.checkpoints[0])


def test_checkpoints_hold_no_pickle_and_refuse_what_is_not_theirs() -> None:
    blob = pack({"a": [1, None]}, {"x": {"y": np.arange(3)}})
    assert unpack(blob).fields["a"] == [1, None]
    assert unpack(blob).part("x")["y"].tolist() == [0, 1, 2]
    for bad in (b"", b"\x80\x04\x95", blob[:-1]):
        with pytest.raises(CheckpointError, match="not a checkpoint of rlgpt"):
            unpack(bad)
    with pytest.raises(CheckpointError, match="has format 2"):
        unpack(pack({"format": 2}, {}))


def test_a_signal_is_heard_between_the_minibatches_of_a_long_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgpt.training.ppo.run.POLL_SECONDS", 0.0)
    config = _config(hyper={"n_epochs": 80, "batch_size": 32, "target_kl": None})

    class Stop(Log):
        learning = False
        polls = 0

        def poll(self) -> Signal:
            self.polls += self.learning
            return "stop" if self.polls == 3 else "go"

    log = Stop()
    update = OptionPPO.train

    def train_and_tell(ppo: OptionPPO, keep_going: Callable[[], bool]) -> Any:
        log.learning = True
        return update(ppo, keep_going)

    monkeypatch.setattr(OptionPPO, "train", train_and_tell)
    result = _train(config, log)
    assert result.state == "stopped" and result.updates == 1
    assert log.polls == 3


class Roomy(ChangedWorld):
    max_envs = 4


@pytest.mark.parametrize(("room", "lanes"), [(2, 2), (4, 4), (9, 4)])
def test_a_machine_with_room_for_another_number_of_envs_goes_on(room: int, lanes: int) -> None:
    config, log, world = configuration(env_steps=512, hyper={"n_envs": 8, "n_steps": 16}), Log(), Roomy()
    train(world, "take_coin", config, [], host_of(world), seed=11, device="cpu", observer=log)
    world.max_envs = room
    blob = log.checkpoints[0]
    again = train(world, "take_coin", config, [], host_of(world), seed=11, device="cpu", resume=blob)
    fields = unpack(again.checkpoint).fields
    assert again.state == "finished" and len(fields["lanes"]) == lanes
    assert (again.checkpoint == log.checkpoints[-1]) == (room >= 4)


def test_a_world_that_can_be_restored_only_since_then_resumes_with_new_episodes() -> None:
    config, log, world = configuration(env_steps=512), Log(), ChangedWorld()
    world.restorable = False
    train(world, "take_coin", config, [], host_of(world), seed=11, device="cpu", observer=log)
    world.restorable = True
    blob = log.checkpoints[0]
    again = train(world, "take_coin", config, [], host_of(world), seed=11, device="cpu", resume=blob)
    assert again.state == "finished" and again.env_steps >= 512
