"""A training that is paused lets another session of the store train."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.store.lease import TrainingSlot, training_slot
from rlgpt.training.steps.learning import TrainingObserver


def test_a_paused_training_gives_its_slot_back_and_waits_for_one(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.setattr("rlgpt.store.lease.limits", lambda folder: {"host_slots": 1})
    said: list[Any] = []
    history = SimpleNamespace(
        runs={}, stop_requested="", pause_requested=False, phase="Train", revision=1, training_stop_requested=False,
        budgets={}, spent=SimpleNamespace(env_steps=0, tokens=0, cost=0.0),
    )  # fmt: skip
    slot = TrainingSlot(tmp_path)
    slot._needed = True
    assert slot.take()
    budget = SimpleNamespace(env_steps=None, tokens=None, hours=None, cost=None)
    runtime: Any = SimpleNamespace(
        history=history, slot=slot, reader=SimpleNamespace(rows=lambda *a, **k: []), need_room=lambda: None,
        apply=lambda r: None, command_replay=SimpleNamespace(wake=lambda h: 1 << 60), say_waiting=said.append,
        writer=SimpleNamespace(event=lambda e, durable: said.append(e), clock=SimpleNamespace(read=lambda: 0.0)),
        settings=SimpleNamespace(budget=budget),
    )  # fmt: skip
    observer = TrainingObserver(runtime, SimpleNamespace(revision=1), None, 9, None, None)  # type: ignore[arg-type]
    assert observer.poll() == "go"
    history.pause_requested = True
    assert observer.poll() == "pause"

    def taken() -> None:
        pytest.fail("the paused session keeps the slot")

    with training_slot(tmp_path, taken):
        history.pause_requested = False
        assert [observer.poll(), observer.poll()] == ["pause", "pause"]
    assert observer.poll() == "go" and said[0] == "paused" and said[-1] == "Train" and len(said) == 3
