"""Files of a run's checkpoints: two of the newest while it goes on, one at its end, whoever wrote the others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.training.steps import learning


class Files:
    """In place of the writer: the names of the files that are there."""

    def __init__(self) -> None:
        self.there: list[str] = []

    def artifact(self, blob: bytes) -> str:
        self.there.append(blob.decode())
        return self.there[-1]

    def discard(self, name: str) -> None:
        if name in self.there:
            self.there.remove(name)

    @contextlib.contextmanager
    def transaction(self, durable: bool = False) -> Iterator[Any]:
        yield SimpleNamespace(add=lambda row: None)


def test_a_resumed_run_discards_the_checkpoints_of_its_earlier_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "_trained", lambda runtime: ({}, 0))
    files = Files()
    runtime: Any = SimpleNamespace(writer=files, write_deaths=lambda tx: None, history=SimpleNamespace(runs={}))
    run: Any = SimpleNamespace(run=1, env_steps=0, checkpoints=[])
    nobody: Any = None
    for worker in range(4):
        observer = learning.TrainingObserver(runtime, nobody, nobody, 100, run, None)
        for number in range(5):
            name = f"{worker}-{number}"
            observer.on_checkpoint(name.encode(), number, number, "rollout")
            run.checkpoints.append(SimpleNamespace(kind="rollout", artifact=name))
        assert files.there == [f"{worker}-3", f"{worker}-4"]
    observer.on_checkpoint(b"boundary", 21, 21, "boundary")
    assert files.there == ["boundary"]
