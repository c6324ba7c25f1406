"""The compiled loss is the eager one but for its last bits, and says so when it cannot be had."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.options.observer import Observer
from rlgpt.training.ppo.machine import MachineLacks
from rlgpt.training.ppo.run import TrainResult, train
from tests.options.toys import BACK, GET_KEY, USE, WALK, ChangedWorld, code, configuration, host_of, term
from tests.ppo.devices import DEVICES

OPTIONS = (code(WALK), code(USE), code(BACK))
PLAN = (PlanItem("view.key", Action(source_hash(GET_KEY))),)


class Log(Observer):
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.checkpoints: list[bytes] = []

    def on_update(self, metrics: dict[str, Any]) -> None:
        self.rows.append(metrics)

    def on_checkpoint(self, blob: bytes, update: int, env_steps: int, kind: str) -> None:
        self.checkpoints.append(blob)


def trained(kernel: str, device: str = "cpu", **more: Any) -> tuple[TrainResult, Log]:
    world, log = ChangedWorld(), Log()
    config = configuration(reward=[term("task")], options=["walk", "use_it", "back", "follow_plan"], env_steps=512)
    result = train(
        world, "take_coin", config, OPTIONS, host_of(world), seed=5, device=device, kernel=kernel, plan=PLAN,
        sources={source_hash(GET_KEY): GET_KEY}, observer=log, **more,
    )  # fmt: skip
    return result, log


def test_without_a_compiler_the_compiled_kernel_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(MachineLacks, match=r"needs a C\+\+ compiler"):
        trained("compiled")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++") and not shutil.which("clang++"), reason="no C++ compiler")
@pytest.mark.parametrize("device", DEVICES)
def test_the_compiled_kernel_learns_as_the_eager_one_and_resumes_bit_by_bit(device: str) -> None:
    _, eager = trained("eager", device)
    result, compiled = trained("compiled", device)
    first, other = eager.rows[0], compiled.rows[0]
    for name in ("kl", "entropy", "policy_loss", "value_loss"):
        assert other[name] == pytest.approx(first[name], rel=1e-3, abs=1e-5), name
    again, _ = trained("compiled", device, resume=compiled.checkpoints[0])
    assert again.checkpoint == result.checkpoint
