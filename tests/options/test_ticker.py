"""The engine on the corridor: what a decision is, how it ends, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from rlgpt.agents.contracts import RlConfigReply
from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.options.slots import CodedAction
from rlgpt.training.ppo.setup import build_setup
from rlgpt.training.worlds.protocol import StepResult
from tests.options.fake_host import FakeHost
from tests.options.toys import (
    BACK,
    FAILS,
    FOREVER,
    GET_KEY,
    LATE,
    NONSENSE,
    NOTHING,
    OPEN_DOOR,
    USE,
    WALK,
    ChangedWorld,
    code,
    configuration,
    host_of,
    term,
)  # fmt: skip

SEED = next(seed for seed in range(50) if Random(seed).choice((1, 2, 3)) == 3)
GAMMA = 0.5


class Driver:
    """Chooser and listener: plays a fixed list of first-head actions and keeps what it is told."""

    def __init__(self, script: Sequence[int | tuple[int, ...]], seeds: Sequence[int] = (SEED,)) -> None:
        self.script = list(script)
        self.seeds = list(seeds)
        self.decisions: list[dict[str, Any]] = []
        self.results: list[EpisodeResult] = []
        self.batches: list[int] = []
        self.masks: list[list[int]] = []

    def on_start(self, lane: Lane) -> bool:
        if not self.seeds:
            return False
        lane.seed = self.seeds.pop(0)
        return True

    def on_reset(self, lane: Lane) -> None:
        pass

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        self.batches.append(len(lanes))
        for lane in lanes:
            assert lane.mask is not None
            self.masks.append(lane.mask.nonzero()[0].tolist())
        chosen = [self.script.pop(0) if self.script else 1 for _ in lanes]
        return [(a,) if isinstance(a, int) else a for a in chosen]

    def on_decision(self, lane: Lane) -> None:
        self.decisions.append(
            {"steps": lane.steps, "reward": lane.reward, "discount": lane.discount, "end": lane.end,
             "message": lane.message, "outcome": lane.outcome, "slot": lane.slot}
        )  # fmt: skip

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        self.results.append(result)


def _runner(
    driver: Driver, options: Sequence[CodedAction] = (), *, world: ChangedWorld | None = None, lanes: int = 1,
    task: str = "take_coin", plan: Sequence[PlanItem] = (), sources: dict[str, str] | None = None,
    predicates: Sequence[str] = (), **config: Any,
) -> tuple[OptionRunner, FakeHost]:  # fmt: skip
    world = world or ChangedWorld()
    names = list(dict.fromkeys(option.name for option in options)) + (["follow_plan"] if plan else [])
    reply: RlConfigReply = configuration(options=names, **{"reward": [term("step")]} | config)
    setup = build_setup(world, task, reply, options, plan, sources or {}, [])
    host = host_of(world)
    programs = setup.space.programs
    host.load(type(programs)(**vars(programs) | {"predicates": tuple(predicates)}))
    runner = OptionRunner(
        world, host, setup.space, [setup.lane(i) for i in range(lanes)], driver, driver,
        observation=setup.observation, gamma=GAMMA, target=setup.target, predicates=bool(predicates),
    )  # fmt: skip
    runner.start()
    return runner, host


def _until(runner: OptionRunner, driver: Driver, decisions: int) -> list[dict[str, Any]]:
    for _ in range(200):
        if len(driver.decisions) >= decisions:
            return driver.decisions
        runner.tick()
    raise AssertionError(f"only {len(driver.decisions)} decisions")


def test_a_primitive_is_a_decision_of_one_env_step() -> None:
    driver = Driver([1])
    runner, _ = _runner(driver)
    (got,) = _until(runner, driver, 1)
    assert (got["steps"], got["reward"], got["discount"], got["slot"]) == (1, 1.0, GAMMA, -1)
    assert runner.env_steps == 1


SHAPING = "def reward(before, view):\n    return 0.5 * (view.position - before.position)\n"


@pytest.mark.parametrize("lanes", [1, 5])
@pytest.mark.parametrize("served", [False, True])
def test_a_primitive_may_be_repeated_as_one_decision(lanes: int, served: bool) -> None:
    """Also where the host sees every view, and where lanes take turns in two halves."""
    driver = Driver([1] * lanes, [SEED] * lanes)
    more: dict[str, Any] = {}
    if served:
        reward = [term("step"), term("generated", 1.0, source_hash(SHAPING))]
        more = {"predicates": ["view.key"], "reward": reward, "sources": {source_hash(SHAPING): SHAPING}}
    runner, _ = _runner(driver, [code(WALK)], lanes=lanes, primitive_steps=3, **more)
    got = _until(runner, driver, lanes)[:lanes]
    each = 1.5 if served else 1.0
    assert {(d["steps"], d["discount"], d["slot"]) for d in got} == {(3, GAMMA**3, -1)}
    assert [d["reward"] for d in got] == [pytest.approx(each * (1 + GAMMA + GAMMA**2))] * lanes
    assert min(lane.env._position for lane in runner.lanes) == 3  # type: ignore[attr-defined]


def test_a_repeated_primitive_ends_with_an_interrupt_and_with_the_episode() -> None:
    driver = Driver([1] * 9)
    runner, _ = _runner(driver, primitive_steps=4, horizon=10)
    while not driver.results:
        runner.tick()
    steps = [d["steps"] for d in driver.decisions]
    assert sum(steps) == 10 and driver.results[0].env_steps == 10
    assert steps[:2] == [4, _door() + 1 - 4], "the closed door interrupts"
    assert set(steps[2:]) == {1}


def _door() -> int:
    draw = Random(SEED)
    draw.choice((1, 2, 3))
    return draw.choice((4, 5))


def test_an_option_is_a_decision_of_k_env_steps_with_its_discounted_reward() -> None:
    driver = Driver([3])
    runner, _ = _runner(driver, [code(WALK)])
    (got,) = _until(runner, driver, 1)
    assert (got["steps"], got["end"], got["discount"]) == (3, "return", GAMMA**3)
    assert got["reward"] == 1 + GAMMA + GAMMA**2
    assert runner.env_steps == 3


def test_an_option_ends_after_max_option_steps() -> None:
    driver = Driver([3])
    runner, _ = _runner(driver, [code(FOREVER)], option_cap=2)
    (got,) = _until(runner, driver, 1)
    assert (got["steps"], got["end"]) == (2, "cap")


def test_an_option_ends_with_the_episode() -> None:
    driver = Driver([3])
    runner, _ = _runner(driver, [code(FOREVER, uninterruptible=True)], option_cap=200, horizon=10)
    (got,) = _until(runner, driver, 1)
    assert (got["end"], got["steps"], got["outcome"]) == ("time", 10, "time")


def test_an_interrupt_ends_an_option_unless_its_code_is_uninterruptible() -> None:
    """The closed door at 4 or 5 interrupts when walked against."""
    for uninterruptible, end in ((False, "alarm"), (True, "cap")):
        driver = Driver([3])
        runner, _ = _runner(driver, [code(FOREVER, uninterruptible=uninterruptible)], option_cap=12)
        (got,) = _until(runner, driver, 1)
        assert got["end"] == end


def test_under_follow_plan_the_running_code_decides_about_the_interrupt() -> None:
    plan = (PlanItem("view.opened", Action(source_hash(FOREVER))),)
    for uninterruptible, end in ((False, "alarm"), (True, "cap")):
        driver = Driver([3])
        runner, _ = _runner(driver, [code(FOREVER, uninterruptible=uninterruptible)], plan=plan, option_cap=12)
        assert _until(runner, driver, 1)[0]["end"] == end


@pytest.mark.parametrize(
    ("source", "end", "steps", "message"),
    [
        (NOTHING, "return", 1, ""),
        (FAILS, "error", 1, "ZeroDivisionError: no"),
        (NONSENSE, "bad_yield", 1, "yield one of"),
        (LATE, "error", 1, "ZeroDivisionError: no"),
    ],
)
def test_an_option_that_ends_at_once_costs_one_noop_and_the_episode_goes_on(
    source: str, end: str, steps: int, message: str
) -> None:
    driver = Driver([3])
    runner, _ = _runner(driver, [code(source)])
    (got,) = _until(runner, driver, 1)
    assert (got["end"], got["steps"], got["outcome"]) == (end, steps, "")
    assert message in got["message"]
    assert runner.env_steps == 1


def test_ends_and_usage_are_counted_per_slot() -> None:
    driver = Driver([3, 4, 1, 3])
    runner, _ = _runner(driver, [code(WALK), code(FAILS)], horizon=10)
    while not driver.results:
        runner.tick()
    (result,) = driver.results
    assert result.ends["fails"] == {"error": 1}
    assert sum(result.ends["walk"].values()) == 2 == result.usage["walk"]
    assert result.decisions == sum(result.usage.values()) == len(driver.decisions)
    assert result.env_steps == 10 and result.end == "time"


def test_the_policy_is_asked_only_for_lanes_at_a_decision() -> None:
    driver = Driver([3, 1, 1, 1, 1], seeds=(SEED, SEED))
    runner, _ = _runner(driver, [code(WALK)], lanes=2)
    for _ in range(3):
        runner.tick()
    assert driver.batches == [2, 1, 1]


def test_a_tick_sends_one_message_for_all_open_options() -> None:
    driver = Driver([3, 3, 3], seeds=(SEED, SEED, SEED))
    runner, host = _runner(driver, [code(WALK)], lanes=3)
    for _ in range(3):
        runner.tick()
    assert host.messages == 3
    assert [len(asks) for asks in host.asks] == [3, 3, 3]
    assert runner.env_steps == 9


def test_without_open_options_the_host_is_left_alone() -> None:
    driver = Driver([1] * 10)
    runner, host = _runner(driver, [code(WALK)])
    for _ in range(10):
        runner.tick()
    assert host.messages == 0


def test_open_options_are_finished_not_dropped() -> None:
    driver = Driver([3, 3], seeds=(SEED, SEED))
    runner, _ = _runner(driver, [code(WALK)], lanes=2)
    runner.tick()
    assert not runner.at_rest()
    runner.rest()
    assert runner.at_rest()
    assert [d["steps"] for d in driver.decisions] == [3, 3]
    assert len(driver.batches) == 1


def test_available_masks_the_slots_of_an_option_at_decisions() -> None:
    gated = 'def gated(view):\n    yield "right"\ndef available(view):\n    return view.position >= 2\n'
    driver = Driver([1, 1, 3])
    runner, _ = _runner(driver, [code(gated, has_available=True), code(WALK)])
    _until(runner, driver, 3)
    assert [3 in mask for mask in driver.masks] == [False, False, True]
    assert all(4 in mask for mask in driver.masks)


def test_with_nothing_available_the_noop_is_offered() -> None:
    never = 'def never(view):\n    yield "right"\ndef available(view):\n    return False\n'
    driver = Driver([0])
    runner, _ = _runner(driver, [code(never, has_available=True)], primitives=[])
    _until(runner, driver, 1)
    assert driver.masks == [[0]]


def test_a_quarantined_option_is_masked_from_then_on() -> None:
    driver = Driver([3, 1])
    runner, host = _runner(driver, [code(WALK), code(USE)])
    host.quarantined.add(0)
    _until(runner, driver, 2)
    assert driver.decisions[0]["end"] == "quarantined"
    assert [3 in mask for mask in driver.masks] == [True, False]


def test_follow_plan_runs_the_first_sub_action_that_is_not_done() -> None:
    plan = (PlanItem("view.key", Action(source_hash(GET_KEY))), PlanItem("view.opened", Action(source_hash(OPEN_DOOR))))
    driver = Driver([3, 3, 3])
    sources = {source_hash(GET_KEY): GET_KEY, source_hash(OPEN_DOOR): OPEN_DOOR}
    runner, _ = _runner(driver, plan=plan, sources=sources, option_cap=4)
    _until(runner, driver, 3)
    assert [d["end"] for d in driver.decisions] == ["cap", "return", "return"]
    assert driver.decisions[2]["steps"] == 1  # all done: one no-op
    assert runner.lanes[0].env.milestones() == {"take_key", "open_door"}


def test_the_horizon_of_the_configuration_terminates_and_is_observed() -> None:
    driver = Driver([1] * 5)
    runner, _ = _runner(driver, horizon=10)
    lane = runner.lanes[0]
    seen = []
    while not driver.results:
        runner.tick()
        assert lane.observation is not None
        seen.append(float(lane.observation[-1]))
    assert driver.results[0].env_steps == 10 and driver.results[0].end == "time"
    assert driver.decisions[-1]["outcome"] == "time"
    assert seen == pytest.approx([(10 - t) / 60 for t in range(10)])


def test_success_death_and_artificial_cuts_are_told_apart() -> None:
    def bend(kind: str) -> Callable[[Any, Any, StepResult], StepResult]:
        return lambda env, command, result: StepResult(0.0, kind == "death", kind == "truncated")

    for kind in ("death", "truncated"):
        driver = Driver([1])
        runner, _ = _runner(driver, world=ChangedWorld(bend(kind)))
        runner.tick()
        assert driver.results[0].end == kind and not driver.results[0].success
    driver = Driver([1, 1, 1, 2])
    runner, _ = _runner(driver, task="take_key")
    for _ in range(4):
        runner.tick()
    assert driver.results[0].success and driver.results[0].end == "success"


def test_a_truncation_inside_an_option_ends_it_and_keeps_its_reward() -> None:
    def bend(env: Any, command: Any, result: StepResult) -> StepResult:
        return StepResult(1.0, False, env.steps == 2)

    driver = Driver([3])
    runner, _ = _runner(driver, [code(WALK)], world=ChangedWorld(bend), reward=[term("world")])
    (got,) = _until(runner, driver, 1)
    assert (got["steps"], got["end"], got["outcome"], got["reward"]) == (2, "truncated", "truncated", 1.5)


def test_an_option_runs_on_the_first_head_alone() -> None:
    driver = Driver([(2, 1), (3, 0)])
    walk = 'def walk(view):\n    view = yield ("right", False)\n'
    world = ChangedWorld(two_heads=True)
    runner, _ = _runner(driver, [code(walk)], world=world, primitives=["left", "right"])
    _until(runner, driver, 2)
    assert driver.decisions[0]["end"] == ""
    assert [d["slot"] for d in driver.decisions] == [-1, 0]


def test_generated_rewards_of_every_env_step_count_discounted() -> None:
    source = "def reward(before, view):\n    return float(view.position - before.position)\n"
    key = source_hash(source)
    driver = Driver([3, 1, 0])
    runner, _ = _runner(
        driver, [code(WALK)], reward=[term("generated", 2.0, key)], sources={key: source}
    )  # fmt: skip
    _until(runner, driver, 3)
    assert driver.decisions[0]["reward"] == pytest.approx(2 * (1 + GAMMA + GAMMA**2))
    assert [d["reward"] for d in driver.decisions[1:]] == [2.0, -2.0]
    assert runner.lanes[0].stream.totals == [2 * (3 + 1 - 1)]


def test_predicates_are_known_at_every_step_of_an_episode() -> None:
    driver = Driver([1, 1, 1, 2, 0, 0])
    runner, _ = _runner(driver, predicates=["view.position == 2", "view.key", "view.opened"], horizon=10)
    while not driver.results:
        runner.tick()
    assert driver.results[0].truths == 0b011


def test_an_episode_does_not_know_the_lanes_beside_it() -> None:
    def episodes(lanes: int) -> list[EpisodeResult]:
        driver = _Sampler()
        runner, _ = _runner(driver, [code(WALK), code(BACK), code(USE)], lanes=lanes)
        while any(lane.phase != "idle" for lane in runner.lanes):
            runner.tick()
        return sorted(driver.results, key=lambda r: r.seed)

    assert episodes(1) == episodes(3) == episodes(5)


class _Sampler(Driver):
    def __init__(self) -> None:
        super().__init__([], seeds=range(9))

    def on_start(self, lane: Lane) -> bool:
        going = super().on_start(lane)
        lane.rng = np.random.default_rng(lane.seed)
        lane.episode = lane.seed
        return going

    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...]]:
        return [(int(lane.rng.choice(lane.mask.nonzero()[0])),) for lane in lanes if lane.mask is not None]


def test_while_the_host_works_on_one_half_of_the_lanes_the_other_is_stepped() -> None:
    """Between a message to the host and its answer lie the env steps of the lanes that were asked for before."""
    driver = Driver([3] * 4, seeds=(SEED,) * 4)
    runner, host = _runner(driver, [code(WALK)], lanes=4)
    told: list[tuple[str, list[int]]] = []
    post, collect, step = host.post, host.collect, runner._step
    host.post = lambda asks: (told.append(("post", [ask.lane for ask in asks])), post(asks))[1]  # type: ignore[method-assign]
    host.collect = lambda: (told.append(("collect", [])), collect())[1]  # type: ignore[method-assign]
    runner._step = lambda lane, command: (told.append(("step", [lane.index])), step(lane, command))[1]  # type: ignore[method-assign]
    runner.tick()
    runner.tick()
    assert told == [
        ("post", [0, 1]),
        ("collect", []), ("post", [2, 3]), ("step", [0]), ("step", [1]),
        ("collect", []), ("post", [0, 1]), ("step", [2]), ("step", [3]),
        ("collect", []), ("post", [2, 3]), ("step", [0]), ("step", [1]),
    ]  # fmt: skip
    runner.rest()
    assert runner.at_rest() and [lane.env.steps for lane in runner.lanes] == [3, 3, 3, 3]
