"""Any world with its envs' steps and resets taken on threads: what `StepsElsewhere` is for, without more processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rlgpt.training.worlds.protocol import Env, NativeAction, StepResult, World

POOL = ThreadPoolExecutor(8)


class _Elsewhere:
    """Comes before the env's own class."""

    begun: Future[StepResult] | None = None
    sent: NativeAction = ()
    begun_reset: Future[None] | None = None
    seed = -1

    def begin_step(self, command: NativeAction) -> None:
        assert self.begun is None, "the step before was not waited for"
        self.sent, self.begun = command, POOL.submit(super().step, command)  # type: ignore[misc]

    def step(self, command: NativeAction) -> StepResult:
        begun, self.begun = self.begun, None
        if begun is None:
            return super().step(command)  # type: ignore[misc,no-any-return]
        assert command == self.sent
        return begun.result()

    def begin_reset(self, seed: int) -> None:
        assert self.begun is None and self.begun_reset is None, "what was begun before was not waited for"

        def reset() -> None:
            time.sleep(seed % 5 / 1000)  # resets end in another order than they begin
            super(_Elsewhere, self).reset(seed)  # type: ignore[misc]

        self.seed, self.begun_reset = seed, POOL.submit(reset)

    def reset(self, seed: int) -> None:
        begun, self.begun_reset = self.begun_reset, None
        if begun is None:
            super().reset(seed)  # type: ignore[misc]
            return
        assert seed == self.seed
        begun.result()


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
