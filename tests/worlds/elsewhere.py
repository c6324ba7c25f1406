"""Any world with its envs' steps taken on threads: what `StepsElsewhere` is for, without a process for each env."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rlgpt.training.worlds.protocol import Env, NativeAction, StepResult, World

POOL = ThreadPoolExecutor(8)


class _Elsewhere:
    """Comes before the env's own class."""

    begun: Future[StepResult] | None = None
    sent: NativeAction = ()

    def begin_step(self, command: NativeAction) -> None:
        assert self.begun is None, "the step before was not waited for"
        self.sent, self.begun = command, POOL.submit(super().step, command)  # type: ignore[misc]

    def step(self, command: NativeAction) -> StepResult:
        begun, self.begun = self.begun, None
        if begun is None:
            return super().step(command)  # type: ignore[misc,no-any-return]
        assert command == self.sent
        return begun.result()


class Elsewhere:
    """The world `inner`, computed elsewhere."""

    def __init__(self, inner: World) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> Env:
        env = self.inner.make(task, features=features, pixels=pixels)
        kind = type(env)
        env.__class__ = type(f"Elsewhere{kind.__name__}", (_Elsewhere, kind), {})
        return env


def elsewhere(world: World) -> World:
    return Elsewhere(world)  # type: ignore[return-value]
