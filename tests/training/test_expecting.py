"""A world that makes its episodes ahead is told of all but the first of every lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import evaluate
from rlgpt.training.seeds import episode_seed
from tests.options.toys import ChangedWorld, configuration, host_of

LANES = 2


class Told(ChangedWorld):
    """Notes of every episode that begins whether it had been told of."""

    def __init__(self) -> None:
        super().__init__()
        self.told: set[int] = set()
        self.begun: list[tuple[int, bool]] = []

    def expect(self, seeds: Sequence[int]) -> None:
        self.told.update(seeds)

    def make(self, task: str, **more: Any) -> Any:
        env = super().make(task, **more)
        env.reset = self._noted(env.reset)  # type: ignore[method-assign]
        return env

    def _noted(self, reset: Callable[[int], None]) -> Callable[[int], None]:
        def noted(seed: int) -> None:
            self.begun.append((seed, seed in self.told))
            reset(seed)

        return noted


def test_training_tells_of_every_lanes_next_episode() -> None:
    world = Told()
    train(world, "take_key", configuration(), [], host_of(world), seed=1, device="cpu")
    expected = [(episode_seed(1, "train", index), index >= LANES) for index in range(len(world.begun))]
    assert len(expected) > 3 * LANES and world.begun == expected


def test_an_evaluation_tells_of_its_own_episodes_and_of_no_others() -> None:
    other, world = ChangedWorld(), Told()
    result = train(other, "take_key", configuration(), [], host_of(other), seed=1, device="cpu")
    seeds = [episode_seed(1, "dev", index) for index in range(7)]
    evaluate(world, "take_key", load_policy(result.checkpoint, world), host_of(world), seeds, n_envs=LANES)
    assert world.begun == [(seed, index >= LANES) for index, seed in enumerate(seeds)]
    assert world.told == set(seeds[LANES:])
