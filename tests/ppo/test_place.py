"""Where an env computes changes nothing but time: neither the bytes of a checkpoint nor an episode.

The number of lanes does change a training: its lanes share the rollout and the numbering of the episodes. So equal
checkpoints are asked for at each number of lanes, not across them; across them, equal episodes (`training/test_lanes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from rlgpt.training.host.api import Host
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.options.slots import CodedAction
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.setup import build_setup
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.optional_parts import StepsElsewhere, offers
from rlgpt.training.worlds.protocol import World
from tests.options.test_ticker import Driver
from tests.options.toys import ChangedWorld, configuration, host_of, term
from tests.worlds.elsewhere import elsewhere

LANES = (1, 3, 8, 16)
WANDER = """
def wander(view):
    for _ in range(rng.randint(1, 4)):
        view = yield rng.choice({ways})
"""
TASKS = {"corridor": "take_coin", "crafter": "crafter_score"}


def _world(name: str) -> World:
    return ChangedWorld() if name == "corridor" else registry.get(name)


@pytest.fixture(scope="module", params=list(TASKS))
def hosted(request: pytest.FixtureRequest) -> Iterator[tuple[str, Host]]:
    host = open_host(_world(request.param), lanes=max(LANES), mode="locked", seed=5)
    yield request.param, host
    host.close()


def _slow(world: World, reset_steps: int) -> World:
    kind = type(world)
    return type(f"Slow{kind.__name__}", (kind,), {"slow": True, "reset_steps": reset_steps})()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("lanes", "reset_steps"), [*((lanes, None) for lanes in LANES), (8, 0), (3, 200), (16, 7)])
def test_a_checkpoint_is_the_same_wherever_the_envs_compute(
    hosted: tuple[str, Host], lanes: int, reset_steps: int | None
) -> None:
    name, host = hosted
    world = _world(name) if reset_steps is None else _slow(_world(name), reset_steps)
    ways = tuple(primitive.name for primitive in world.primitives[:3])
    source = WANDER.format(ways=ways)
    assert host.admit("action", source).admitted
    features = list(world.default_features)
    config = configuration(
        observation=[f for f in features if f != "time_left"], primitives=list(ways), options=["wander"],
        reward=[term("world")], horizon=60, hyper={"n_envs": lanes}, env_steps=1536,
    )  # fmt: skip
    local, away = (
        train(place, TASKS[name], config, [CodedAction("wander", source)], host, seed=4, device="cpu")
        for place in (world, elsewhere(world))
    )
    assert local.checkpoint == away.checkpoint
    assert local.updates >= 2 and local.episodes > 0


def test_a_world_that_says_that_it_is_slow_has_all_its_lanes_stepped_at_once() -> None:
    class Slow(ChangedWorld):
        slow = True

    for world, turns in ((ChangedWorld(), 2), (elsewhere(ChangedWorld()), 2), (Slow(), 1), (elsewhere(Slow()), 1)):
        assert offers(world.make("take_coin"), StepsElsewhere) == (type(world).__name__ == "Elsewhere")
        setup = build_setup(world, "take_coin", configuration(), [], [], {}, [])
        lanes = [setup.lane(index) for index in range(8)]
        driver = Driver([])
        runner = OptionRunner(world, host_of(ChangedWorld()), setup.space, lanes, driver, driver, predicates=True)
        assert len(runner._turns) == turns


class Diary(Driver):
    """Chooses the first primitive; keeps the order in which envs were begun to reset, stepped and waited for."""

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__([], seeds=seeds)
        self.lines: list[tuple[str, int]] = []

    def watch(self, lane: Lane) -> None:
        for name in ("begin_reset", "reset", "step"):
            setattr(lane.env, name, self._told(name, lane.index, getattr(lane.env, name)))

    def _told(self, name: str, index: int, call: Callable[..., Any]) -> Callable[..., Any]:
        def told(*arguments: Any) -> Any:
            self.lines.append((name, index))
            return call(*arguments)

        return told


def test_while_a_slow_env_is_reset_the_others_are_stepped() -> None:
    world = elsewhere(_slow(ChangedWorld(), 5))
    setup = build_setup(world, "take_coin", configuration(horizon=10), [], [], {}, [])
    lanes = [setup.lane(index) for index in range(3)]
    diary = Diary(range(6))
    for lane in lanes:
        diary.watch(lane)
        lane.horizon -= lane.index  # episodes end one after the other
    runner = OptionRunner(world, host_of(ChangedWorld()), setup.space, lanes, diary, diary)
    runner.start()
    assert diary.lines == [("begin_reset", 0), ("begin_reset", 1), ("begin_reset", 2),
                           ("reset", 0), ("reset", 1), ("reset", 2)]  # fmt: skip
    while any(lane.phase != "idle" for lane in lanes):
        runner.tick()
    begun = diary.lines.index(("begin_reset", 0), 6)
    waited = diary.lines.index(("reset", 0), begun)
    between = diary.lines[begun + 1 : waited]
    assert ("step", 1) in between and ("step", 2) in between and ("step", 0) not in between
    assert len(diary.results) == 6


def test_what_rests_for_a_rollout_has_no_reset_open() -> None:
    world = elsewhere(_slow(ChangedWorld(), 50))
    setup = build_setup(world, "take_coin", configuration(horizon=10), [], [], {}, [])
    lanes = [setup.lane(index) for index in range(3)]
    driver = Driver([], seeds=range(9))
    runner = OptionRunner(world, host_of(ChangedWorld()), setup.space, lanes, driver, driver)
    runner.start()
    while all(lane.phase != "resetting" for lane in lanes):
        runner.tick()
    runner.rest()
    assert {lane.phase for lane in lanes} == {"decide"}
