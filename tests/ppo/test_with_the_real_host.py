"""The action host and the tests' stand-in for it give the same training, evaluation and trials, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rlgpt.training.host.api import Action, Host, PlanItem, source_hash
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.slots import CodedAction
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.evaluation import FollowPlan, evaluate
from rlgpt.training.rollouts.trials import PrefixItem, try_item
from rlgpt.training.seeds import episode_seed
from tests.options.toys import (
    BACK,
    GET_KEY,
    LATE,
    OPEN_DOOR,
    USE,
    WALK,
    ChangedWorld,
    configuration,
    host_of,
    packed_view,
    term,
)

GATED = 'def gated(view):\n    yield "right"\n\n\ndef available(view):\n    return view.position >= 2\n'
SHAPING = "def reward(before, view):\n    return 0.1 * (view.position - before.position)\n"
ACTIONS = {
    "walk": WALK,
    "use_it": USE,
    "back": BACK,
    "late": LATE,
    "get_key": GET_KEY,
    "open_door": OPEN_DOOR,
    "gated": GATED,
}
DONE = {"key": "view.key", "door": "view.opened"}
SEEDS = [episode_seed(1, "dev", index) for index in range(8)]
SOURCES = {source_hash(source): source for source in (*ACTIONS.values(), SHAPING)}
WORLD = ChangedWorld()


def _action(name: str) -> Action:
    return Action(source_hash(ACTIONS[name]))


PLAN = (PlanItem("view.key", _action("get_key")), PlanItem("view.opened", _action("open_door")))


@pytest.fixture(scope="module", params=["trusted", "locked"])
def real(request: pytest.FixtureRequest) -> Iterator[Host]:
    host = open_host(WORLD, lanes=8, mode=request.param)
    yield host
    host.close()


def _admitted(host: Host) -> list[CodedAction]:
    views = [[packed_view(0), packed_view(1)], [packed_view(3, 1)]]
    for test in DONE.values():
        assert host.admit("done_when", test, views).admitted
    assert host.admit("reward", SHAPING, views).admitted
    found = []
    for name, source in ACTIONS.items():
        said = host.admit("action", source)
        assert said.admitted, said.message
        arguments: Mapping[str, tuple[object, ...]] = said.arguments
        found.append(CodedAction(name, source, "", arguments, said.uninterruptible, said.has_available))
    return found


RESTORING = {
    "primitive_steps": 2, "recovery": {"share": 0.5, "only_in_trouble": True},
    "branches": {"decisions": 4, "repeats": 2},
}  # fmt: skip
"""Settings under which the host's lanes play other episodes in between."""


@pytest.mark.parametrize("more", [{}, RESTORING], ids=["usual", "restoring"])
def test_training_is_the_same(real: Host, more: dict[str, Any]) -> None:
    options = _admitted(real)
    assert [o.name for o in options if o.has_available] == ["gated"]
    reward = [term("task"), term("generated", 0.5, source_hash(SHAPING))]
    config = configuration(options=[*ACTIONS, "follow_plan"], reward=reward, **more)
    results = [
        train(WORLD, "take_coin", config, options, host, seed=4, device="cpu", plan=PLAN, sources=SOURCES)
        for host in (real, host_of(WORLD))
    ]
    assert results[0].checkpoint == results[1].checkpoint
    policy = load_policy(results[0].checkpoint, WORLD)
    played = [
        evaluate(WORLD, "take_coin", policy, host, SEEDS, predicates=DONE, record_actions=True)
        for host in (real, host_of(WORLD))
    ]
    assert played[0] == played[1]
    assert played[0].end_reasons["late"]["error"] > 0


def test_follow_plan_alone_is_the_same(real: Host) -> None:
    _admitted(real)
    plan = FollowPlan(WORLD, PLAN, SOURCES)
    played = [
        evaluate(WORLD, "open_door", plan, host, SEEDS, variant="plan", predicates=DONE)
        for host in (real, host_of(WORLD))
    ]
    assert played[0] == played[1]
    assert played[0].successes == 8


SUMS = """
def sums(view):
    while view.cell != "key":
        x = sum([1] * {size})
        view = yield "right"
    yield "use"
"""
SLOW, FAST = SUMS.format(size=4_000_000), SUMS.format(size=4)


@pytest.mark.parametrize("source", [SLOW, FAST], ids=["slow", "fast"])
def test_code_that_computes_for_long_fails_its_trial(real: Host, source: str) -> None:
    """Few loop rounds, but each takes some 20 ms; a tenth of that is allowed here."""
    name = source_hash(source)
    assert real.admit("action", source).admitted and real.admit("done_when", "view.key").admitted
    result = try_item(
        WORLD, "take_coin", prefix=(), action=Action(name), done_when="view.key", sources={name: source},
        host=real, seeds=SEEDS, max_steps=20, step_ms=2.0,
    )  # fmt: skip
    assert result.successes == 5
    if source == FAST:
        assert (result.outcome, result.error) == ("accepted", "")
    else:
        assert result.outcome == "failed" and "ms of computing per env step; at most 2 ms" in result.error


def test_trials_are_the_same(real: Host) -> None:
    _admitted(real)
    for name, done_when in (("open_door", "view.opened"), ("late", "view.opened"), ("walk", "view.opened")):
        tried = [
            try_item(
                WORLD,
                "take_coin",
                prefix=(PrefixItem("view.key", _action("get_key")),),
                action=_action(name),
                done_when=done_when,
                sources=SOURCES,
                host=host,
                seeds=SEEDS,
                max_steps=20,
            )
            for host in (real, host_of(WORLD))
        ]
        assert tried[0].outcome == tried[1].outcome == ("accepted" if name == "open_door" else "failed")
        assert [t | {"message": ""} for t in tried[0].trials] == [t | {"message": ""} for t in tried[1].trials]
