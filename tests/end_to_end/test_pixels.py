"""`--observation pixels`: the policy of the session sees the picture of the world, whatever the fast agent chose."""

from __future__ import annotations

import pytest

from rlgpt.store.reader import Reader
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.session import creation
from rlgpt.training.worlds import registry
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import outcome
from tests.options.toys import ChangedWorld
from tests.ppo.devices import DEVICES
from tests.shaking.halting import TRAINING


def test_the_policy_of_a_session_on_pixels_sees_pixels(make: Make) -> None:
    settings = {"observation": "pixels", "method": {"arm": "rl"}, "budget": {"env_steps": 16_000}}
    session = make("collect_wood", start=False, **settings).halting(TRAINING)
    session.halted(240)
    history = session.history()
    config = history.iterations[0].config
    assert config is not None and config.config["observation"] == ["pixels"]
    checkpoint = history.runs[1].checkpoint
    assert checkpoint is not None
    with Reader(session.folder) as reader:
        blob = reader.artifact(checkpoint.artifact)
    policy = load_policy(blob, registry.get("crafter"))
    assert policy.observation is not None and policy.observation.picture == (64, 64, 3)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.slow), DEVICES[1]])
def test_a_kill_while_a_session_learns_on_pixels_changes_nothing_but_the_time(make: Make, device: str) -> None:
    loop = {"iterations": 0, "dev_first": 2, "test_episodes": 2}
    settings = {"observation": "pixels", "device": device, "method": {"arm": "rl"}, "budget": {"env_steps": 12_000}}

    def finished(session: Running) -> Running:
        history = session.finish(900)
        assert history.result in ("finished", "succeeded"), history.reason
        assert history.runs[1].device == device
        return session

    whole = finished(make("collect_wood", loop, **settings))
    cut = make("collect_wood", loop, start=False, **settings).halting(TRAINING)
    cut.halted(300).kill()
    finished(cut)
    assert any(run.hidden for run in cut.history().runs.values()), "the kill was not in training"
    assert outcome(cut.folder) == outcome(whole.folder)


def test_a_world_without_pictures_is_refused_before_a_session_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangedWorld, "pixel_shape", None)
    monkeypatch.setattr(registry, "get", lambda name: ChangedWorld())
    with pytest.raises(creation.CannotCreate, match="draws no picture to learn from"):
        creation.create({"task": "take_key", "observation": "pixels"})


def test_pictures_too_small_for_the_network_are_refused_before_a_session_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ChangedWorld, "pixel_shape", (16, 40, 3))
    monkeypatch.setattr(registry, "get", lambda name: ChangedWorld())
    with pytest.raises(creation.CannotCreate, match="16 x 40 pixels, and a network needs 36 x 36 at least"):
        creation.create({"task": "take_key", "observation": "pixels"})
