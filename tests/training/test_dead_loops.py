"""Which ways of wasting time count as a dead loop."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rlgpt.training.options.dead_loops import DeadLoopWatch


def _watched(steps: Iterable[tuple[int, int, bool]], horizon: int = 500) -> DeadLoopWatch:
    watch = DeadLoopWatch(horizon)
    watch.start(0)
    for key, novelty, waiting in steps:
        watch.step(key, novelty, waiting)
    return watch


def test_a_two_cycle_a_twelve_cycle_and_striking_the_ground_are_dead_loops() -> None:
    for cycle in (1, 2, 12):
        assert _watched((t % cycle, 0, False) for t in range(500)).dead(by_time=True), cycle


def test_more_places_than_a_tenth_of_the_window_are_no_loop() -> None:
    assert not _watched((t % 21, 0, False) for t in range(500)).dead(by_time=True)
    assert _watched((t % 20, 0, False) for t in range(500)).dead(by_time=True)


def test_sleeping_and_waiting_for_a_plant_are_no_dead_loops() -> None:
    assert not _watched((t, t, t > 50) for t in range(500)).dead(by_time=True)


def test_tunnelling_is_no_dead_loop() -> None:
    """Every step a new cell or a new stone: keys differ."""
    assert not _watched((t // 2, 0, False) for t in range(500)).dead(by_time=True)


def test_something_new_within_the_window_ends_a_loop() -> None:
    assert not _watched((t % 2, t // 150, False) for t in range(500)).dead(by_time=True)


def test_dying_is_no_dead_loop_unless_most_of_the_episode_was_one() -> None:
    def last(share: int) -> DeadLoopWatch:
        return _watched((t if t < 1000 - share else 0, min(t, 1000 - share), False) for t in range(1000))

    assert last(300).looping
    assert not last(300).dead(by_time=False)
    assert last(300).dead(by_time=True)
    assert last(800).dead(by_time=False)


def test_the_window_is_200_or_half_the_horizon() -> None:
    assert DeadLoopWatch(10_000).window == 200
    assert DeadLoopWatch(60).window == 30
    assert not _watched(((0, 0, False) for _ in range(29)), 60).looping
    assert _watched(((0, 0, False) for _ in range(30)), 60).looping


def test_an_episode_forgets_the_one_before() -> None:
    watch = _watched((0, 0, False) for _ in range(500))
    watch.start(0)
    assert not watch.dead(by_time=True)


@pytest.mark.parametrize("cut", [10, 199, 250])
def test_saved_and_restored_it_goes_on_as_if_nothing_had_happened(cut: int) -> None:
    steps = [(t % 7, t // 230, t % 5 == 0) for t in range(400)]
    whole, first, second = _watched(steps), _watched(steps[:cut]), DeadLoopWatch(500)
    second.restore(first.save())
    for step in steps[cut:]:
        second.step(*step)
    assert second.save() == whole.save()
