"""Recovery training: some training episodes begin where the plan alone fails; what is measured never does."""

from __future__ import annotations

from typing import Any

import pytest
import torch as th

from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.observer import Observer, Signal
from rlgpt.training.options.runner import OptionRunner
from rlgpt.training.options.trouble import LASTS, QUIET, TroubleWatch
from rlgpt.training.ppo import recovery
from rlgpt.training.ppo.run import Run, train
from rlgpt.training.ppo.setup import ConfigError, build_setup
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import evaluate
from tests.options.toys import GET_KEY, WALK, ChangedWorld, code, configuration, host_of, term

WAIT = 'def wait_there(view):\n    while True:\n        yield "left"\n'
"""A plan that takes the key and then never opens the door."""
PLAN = (
    PlanItem("view.key", Action(source_hash(GET_KEY))),
    PlanItem("view.opened", Action(source_hash(WAIT))),
)
SOURCES = {source_hash(source): source for source in (GET_KEY, WAIT)}


class Rows(Observer):
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def on_update(self, metrics: dict[str, Any]) -> None:
        self.rows.append(metrics)


def _train(recovery: dict[str, Any], plan: tuple[PlanItem, ...] = PLAN, **more: Any) -> Any:
    world = more.pop("world", None) or ChangedWorld()
    config = configuration(
        options=["walk", "follow_plan"], plan_prior=0.5, option_prior=0.2, env_steps=1024, option_cap=4, horizon=40,
        recovery=recovery, **({"reward": more.pop("reward")} if "reward" in more else {}),
    )  # fmt: skip
    return train(
        world, "open_door", config, [code(WALK)], host_of(world), seed=4, device="cpu", plan=plan, sources=SOURCES,
        **more,
    )  # fmt: skip


def test_starts_are_states_of_lost_episodes_of_the_plan_before_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, bool]] = []
    finished: list[int] = []
    on_reset, on_end = Run.on_reset, Run.on_end

    def started(run: Run, lane: Lane) -> None:
        on_reset(run, lane)
        begun.append((lane.env.steps, run._recovers(lane) is not None))
        if begun[-1][1]:
            assert "take_key" in lane.env.milestones() and lane.start_view is not None and lane.moved

    def ended(run: Run, lane: Lane, result: EpisodeResult) -> None:
        on_end(run, lane, result)
        finished.append(run._recovers(lane) is None)

    monkeypatch.setattr(Run, "on_reset", started)
    monkeypatch.setattr(Run, "on_end", ended)
    rows = Rows()
    result = _train({"share": 0.5}, observer=rows)
    recovered = [steps for steps, recovers in begun if recovers]
    assert recovered and all(steps > 0 for steps in recovered)
    assert all(steps == 0 for steps, recovers in begun if not recovers)
    assert 0.25 < len(recovered) / len(begun) < 0.75
    assert sum(row["episodes"] for row in rows.rows) == result.episodes == sum(finished) < len(finished)


def test_collecting_is_charged_and_bounded() -> None:
    rows = Rows()
    _train({"share": 0.5}, observer=rows)
    rollout = 128
    assert rollout + 0.1 * 1024 <= rows.rows[0]["env_steps"] < rollout + 0.1 * 1024 + 2 * 40 + 2 * 4


def test_without_lost_episodes_every_episode_begins_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    won = (PLAN[0], PlanItem("view.opened", Action(source_hash(OPEN))))
    monkeypatch.setitem(SOURCES, source_hash(OPEN), OPEN)
    rows = Rows()
    result = _train({"share": 0.9}, plan=won, observer=rows)
    assert result.state == "finished" and sum(row["episodes"] for row in rows.rows) == result.episodes > 0


OPEN = 'def unlock(view):\n    while view.cell != "door":\n        view = yield "right"\n    yield "use"\n'


def test_it_needs_a_plan_and_a_world_that_can_be_restored() -> None:
    world = ChangedWorld()
    world.restorable = False
    with pytest.raises(ConfigError, match="world that can be restored"):
        _train({"share": 0.5}, world=world)
    config = configuration(options=["walk"], recovery={"share": 0.5})
    with pytest.raises(ConfigError, match="needs follow_plan"):
        train(ChangedWorld(), "open_door", config, [code(WALK)], host_of(ChangedWorld()), seed=1, device="cpu")


def test_a_stop_while_starts_are_collected_is_a_stop() -> None:
    class Stop(Rows):
        def poll(self) -> Signal:
            return "stop"

    result = _train({"share": 0.5}, observer=Stop())
    assert result.state == "stopped" and result.updates == 0


def test_a_start_depends_on_seed_and_episode_alone() -> None:
    kept = [recovery.StartState(n, b"", None) for n in range(9)]
    one = recovery.Collected(kept, 0)
    drawn = [one.of(1, episode, 0.5) for episode in range(200)]
    assert drawn == [one.of(1, episode, 0.5) for episode in range(200)] != [one.of(2, e, 0.5) for e in range(200)]
    assert 70 < sum(start is not None for start in drawn) < 130
    assert recovery.NOTHING.of(1, 0, 0.9) is None


# ---- the policy only in trouble ------------------------------------------------------------------
def test_signs_of_trouble() -> None:
    watch = TroubleWatch()
    watch.start(3)
    for novelty in range(4, 20):
        watch.decided("cap", novelty)
        assert watch.left == 0
    for end in ("alarm", "return", "error"):
        watch.decided(end, 99)
        assert watch.left == LASTS
    for left in range(LASTS - 1, LASTS - QUIET, -1):
        watch.decided("cap", 99)
        assert watch.left == left
    watch.decided("cap", 99)
    assert watch.left == LASTS, "nothing new for a while"
    other = TroubleWatch()
    other.restore(watch.save())
    assert other == watch


def test_without_trouble_the_plan_runs_in_training_and_in_the_test() -> None:
    world, rows = ChangedWorld(), Rows()
    result = _train({"only_in_trouble": True}, observer=rows, world=world)
    policy = load_policy(result.checkpoint, world)
    assert policy.space.only_in_trouble
    setup = build_setup(
        world, "open_door", configuration(options=["walk", "follow_plan"], recovery={"only_in_trouble": True}),
        [code(WALK)], PLAN, SOURCES, [],
    )  # fmt: skip
    assert setup.space.follow == 3 + next(i for i in setup.space.active() if setup.space.slots[i].name == "follow_plan")  # type: ignore[union-attr]
    for variant, plan_first in (("full", True), ("random", True), ("options_off", False)):
        played = evaluate(world, "open_door", policy, host_of(world), range(20), variant=variant)  # type: ignore[arg-type]
        first = sum(e.usage.get("follow_plan", 0) > 0 for e in played.episodes)
        assert first == (20 if plan_first else 0), variant
        if plan_first:
            assert any(set(e.usage) - {"follow_plan"} for e in played.episodes), "the policy decides in trouble"


def test_with_the_options_off_the_primitives_of_several_heads_are_left() -> None:
    world = ChangedWorld(two_heads=True)
    walk = 'def walk(view):\n    while True:\n        yield ("right", False)\n'
    plan = [PlanItem("view.key", Action(source_hash(walk)))]
    config = configuration(
        options=["follow_plan"], primitives=["stay", "left", "right"], recovery={"only_in_trouble": True}
    )
    setup = build_setup(world, "take_key", config, [], plan, {source_hash(walk): walk}, [])
    allowed = {}
    for name, space in (("full", setup.space), ("options_off", setup.space.without_options())):
        lane = setup.lane(0)
        runner = OptionRunner(world, host_of(world), space, [lane], Nobody(), Nobody(), observation=setup.observation)
        lane.env.reset(1)
        runner.look(lane)
        assert lane.mask is not None
        allowed[name] = lane.mask[: space.first].nonzero()[0].tolist()
    assert allowed == {"full": [setup.space.follow], "options_off": [0, 2]}


class Nobody:
    def choose(self, lanes: Any) -> Any:
        return []

    def on_start(self, lane: Lane) -> bool:
        return False

    def on_reset(self, lane: Lane) -> None:
        pass

    def on_decision(self, lane: Lane) -> None:
        pass

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        pass


@pytest.mark.parametrize("restricted", [False, True])
def test_a_run_begins_with_its_priors_also_where_the_policy_decides_in_trouble_alone(restricted: bool) -> None:
    """At its start no lane is in trouble, so that the masks of the lanes tell nothing of what it may choose there."""
    world = ChangedWorld()
    config = configuration(
        options=["walk", "follow_plan"], plan_prior=0.6, option_prior=0.24, env_steps=0, option_cap=4, horizon=40,
        recovery={"only_in_trouble": restricted},
    )  # fmt: skip
    run = Run(
        world, "open_door", config, [code(WALK)], host_of(world), seed=4, device="cpu", kernel="eager", plan=PLAN,
        sources=SOURCES, views=(), warm=None, resume=None, observer=Rows(), env_steps=0,
    )  # fmt: skip
    lane = run.lanes[0]
    row = th.as_tensor(run.runner.allowed(lane))
    run.runner.look(lane)
    with th.no_grad():
        logits = run.ppo.policy.logits(run.ppo.policy.rows(lane.observation[None]))[0]
    chances = logits[: run.setup.space.first].masked_fill(~row[: run.setup.space.first], -th.inf).softmax(0)
    assert float(chances[run.setup.space.follow]) == pytest.approx(0.6, abs=0.02)
    run.go(1)


def test_the_reward_of_the_curves_is_that_of_the_episodes_they_count() -> None:
    """Episodes that begin in the midst of another one are not counted, so that their reward is not either."""
    for share in (0.0, 0.9):
        rows = Rows()
        _train({"share": share} if share else {}, observer=rows, reward=[term("step", -1.0)])
        counted = sum(row["episodes"] for row in rows.rows)
        paid = sum(row["rewards"]["step"] for row in rows.rows)
        assert counted and -45.0 < paid / counted < -10.0, (share, paid / counted)
