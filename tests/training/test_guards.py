"""Guards: whenever their trigger holds they run before the steps, in evaluations, trials and follow_plan."""

from __future__ import annotations

from rlgpt.training.host.api import FOLLOW_PLAN, Action, Ask, Host, PlanItem, Programs, source_hash
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.rollouts.evaluation import EvaluationResult, FollowPlan, evaluate
from rlgpt.training.rollouts.trial_result import TrialResult
from rlgpt.training.rollouts.trials import PrefixItem, try_item
from rlgpt.training.seeds import episode_seed
from tests.host.driving import COUNT, LEFT, admitted, source
from tests.host.world import WORLD as HOST_WORLD
from tests.host.world import packed
from tests.options.toys import FOREVER, NOTHING, ChangedWorld, host_of

WORLD = ChangedWorld()
SEEDS = [episode_seed(1, "dev", index) for index in range(8)]
FETCH = 'def fetch(view):\n    while view.cell != "key":\n        view = yield "left"\n    yield "use"\n'
PASSED = "view.position >= 4 and not view.key"
"""The key was passed by: what the step never minds."""
ON = PlanItem("view.coin", Action(source_hash(FOREVER)))
SOURCES = {source_hash(s): s for s in (FETCH, FOREVER, NOTHING)}


def played(*plan: PlanItem) -> EvaluationResult:
    policy = FollowPlan(WORLD, plan, SOURCES, names=[f"item {index}" for index in range(len(plan))])
    return evaluate(WORLD, "take_key", policy, host_of(WORLD), SEEDS, traced=True)


def test_a_guard_interrupts_the_step_that_runs() -> None:
    guard = PlanItem("view.key", Action(source_hash(FETCH)), PASSED)
    assert played(ON).successes == 0
    assert played(guard, ON).successes == len(SEEDS)
    assert played(ON, guard).successes == len(SEEDS), "its place among the steps does not matter"


def test_a_guard_that_can_do_nothing_does_not_keep_the_plan_from_going_on() -> None:
    idle = PlanItem("False", Action(source_hash(NOTHING)), "view.position >= 0")
    fetch = PlanItem("view.key", Action(source_hash(FETCH)), PASSED)
    result = played(idle, fetch, ON)
    assert result.successes == len(SEEDS)
    assert result.option_usage["item 0"] == len(SEEDS), "asked once an episode: its trigger never was false again"


def tried(trigger: str, *prefix: PrefixItem) -> TrialResult:
    return try_item(
        WORLD, "take_coin", prefix=prefix, action=Action(source_hash(FETCH)), done_when="view.key", sources=SOURCES,
        host=host_of(WORLD), seeds=SEEDS, max_steps=20, trigger=trigger,
    )  # fmt: skip


def test_a_guard_is_tried_from_where_its_trigger_came_true() -> None:
    result = tried(PASSED, PrefixItem("view.coin", Action(source_hash(FOREVER))))
    assert (result.outcome, result.successes) == ("accepted", 5)
    assert result.evidence["good"]["before"]["position"] == 4


def test_a_trigger_that_never_comes_true_leaves_the_guard_untried() -> None:
    result = tried("view.position > 100", PrefixItem("view.coin", Action(source_hash(FOREVER))))
    assert (result.outcome, result.episodes) == ("unreached", 0) and "in which its trigger holds" in result.error


def test_without_a_step_that_can_be_run_it_is_waited_for_the_trigger() -> None:
    result = tried("view.steps_left < 50")
    assert result.outcome == "failed" and result.episodes == 5, "the key lies to the right of the start"
    assert {failure["end"] for failure in result.evidence["lost"]} == {"time"}


def test_follow_plan_in_the_host_does_the_same() -> None:
    back = source("for _ in range(2):", '    yield "left"', name="back")
    lazy = source("if view.at > 100:", '    yield "left"', name="lazy")
    host: Host = open_host(HOST_WORLD, lanes=1, mode="trusted", seed=1)
    try:
        for text in ("view.at > 100", "view.at >= 5", "view.at == 7", "False"):
            admitted(host, text, "done_when")
        step, guard, idle = (Action(admitted(host, text)) for text in (COUNT, back, lazy))
        plan = (
            PlanItem("view.at > 100", step),
            PlanItem("False", idle, "view.at == 7"),
            PlanItem("False", guard, "view.at >= 5"),
        )
        host.load(Programs(plan=plan, lines=True))
        begun = host.tick([Ask(0, packed(0, whole=True), open=FOLLOW_PLAN, episode_start=True)])[0]
        acted = [begun] + [host.tick([Ask(0, packed(at), resume=True)])[0] for at in (1, 5, 4, 3, 7)]
    finally:
        host.close()
    assert [answer.action & 0xFF for answer in acted] == [0, 0, 2, 2, 0, 2], "the idle guard is passed over"
    assert acted[2].command == LEFT and acted[4].command == LEFT, "the step begins anew after the guard"
    assert acted[2].line == 3 and acted[0].line == 6, "of the yields"
