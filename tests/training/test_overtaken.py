"""What the operator does while a step takes long: an answer of a model, a measurement or a time-out undoes none of it.

Each command is decided inside the step, after a model has answered and before the step goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.agents import loop
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.errors import BudgetReached
from rlgpt.store import events, tables
from rlgpt.store.commands import parse_command
from rlgpt.store.inbox import send
from rlgpt.training import opening, worker
from rlgpt.training.session import creation
from rlgpt.training.session.llm_journal import StoreJournal
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps import waiting
from rlgpt.training.steps.decision_rows import write_decisions

LOOP = {"iterations": 0, "dev_first": 2, "dev_more": 0, "test_episodes": 1}
IDLE = "def {name}(view):\n    view = yield 'noop'\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def opened(home: Path) -> Iterator[Callable[..., SessionRuntime]]:
    made: list[SessionRuntime] = []

    def open_one(**settings: Any) -> SessionRuntime:
        flags = {"task": "collect_wood", "skills": "none", "loop": LOOP, **settings}
        made.append(opening.open_session(Path(creation.create(flags)["folder"])))
        return made[-1]

    yield open_one
    for runtime in made:
        runtime.close()


def told(runtime: SessionRuntime, kind: str, payload: dict[str, Any] | None = None, revision: int | None = None) -> str:
    """Decide a command of the operator now; its state."""
    name = send(runtime.folder, parse_command(kind, payload), revision)
    runtime.inbox.look()
    runtime.apply(runtime)
    return runtime.history.commands[name].state


def step_to(runtime: SessionRuntime, kind: type) -> Any:
    """Do the steps before the first of that kind; that step, announced and not done."""
    while True:
        write_decisions(runtime.writer)
        step = loop.next_step(runtime.history, runtime.limits)
        assert not isinstance(step, loop.Done), step
        worker._announce(runtime, step)
        if isinstance(step, kind):
            return step
        worker.STEPS[type(step)](runtime, step)


def while_asked(runtime: SessionRuntime, act: Callable[[], object], answer: Callable[[Any], Any] | None = None) -> None:
    """From now on `act` happens once, when a model has answered and its step does not know it yet."""
    ask, acted = runtime.ask, threading.Event()

    def asked(call: Callable[[], Any]) -> Any:
        reply = ask(call)
        if not acted.is_set():
            acted.set()
            act()
            runtime.poll()
        return answer(reply) if answer else reply

    runtime.ask = asked  # type: ignore[method-assign]


def do(runtime: SessionRuntime, step: loop.Step) -> None:
    worker.STEPS[type(step)](runtime, step)
    write_decisions(runtime.writer)


def unused(runtime: SessionRuntime) -> list[str]:
    return [row["fields"]["step"] for row in runtime.reader.rows("log") if row["event"] == "answer not used"]


def test_code_of_the_operator_is_tried_that_came_while_the_fast_agent_wrote(
    opened: Callable[..., SessionRuntime],
) -> None:
    runtime = opened()
    step = step_to(runtime, loop.Code)
    edit = {"sub_action": step.item, "source": IDLE.format(name=step.item), "apply": "now"}
    while_asked(runtime, lambda: told(runtime, "edit_code", edit))
    do(runtime, step)
    assert [a.author for a in runtime.history.attempts_of(step.item)] == ["operator"]
    assert loop.next_step(runtime.history, runtime.limits) == loop.Trial(step.item, 1)
    assert unused(runtime) == ["Code"]


def test_no_code_is_kept_of_a_sub_action_that_the_operator_took_out_meanwhile(
    opened: Callable[..., SessionRuntime],
) -> None:
    runtime = opened(task="collect_stone")
    step = step_to(runtime, loop.Code)
    edit = {"edits": [{"op": "remove", "name": step.item}], "apply": "now"}
    while_asked(runtime, lambda: told(runtime, "override", edit, 1))
    do(runtime, step)
    assert runtime.history.revision == 2 and not runtime.history.attempts_of(step.item)


def test_an_answer_stays_of_use_where_the_operator_edited_something_else(
    opened: Callable[..., SessionRuntime],
) -> None:
    runtime = opened(task="collect_stone")
    step = step_to(runtime, loop.Code)
    plan = runtime.history.plan
    assert plan is not None
    other = plan.items[-1].name
    assert other != step.item
    edit = {"edits": [{"op": "pin", "name": other}], "apply": "now"}
    while_asked(runtime, lambda: told(runtime, "override", edit, 1))
    do(runtime, step)
    assert runtime.history.revision == 2
    assert [a.author for a in runtime.history.attempts_of(step.item)] == ["fast"]


def test_the_operators_verdict_stands_that_came_while_the_critic_was_asked(
    opened: Callable[..., SessionRuntime],
) -> None:
    runtime = opened(critic="model")
    step = step_to(runtime, loop.Code)
    ask = runtime.ask
    runtime.ask = lambda call: CodeReply(source=IDLE.format(name=step.item), note="")  # type: ignore
    do(runtime, step)
    runtime.ask = ask  # type: ignore[method-assign]
    judged = step_to(runtime, loop.JudgeItem)
    verdict = {"success": False, "cause": "it waits", "sub_action": step.item}
    while_asked(runtime, lambda: told(runtime, "verdict", verdict))
    do(runtime, judged)
    attempt = runtime.history.attempts_of(step.item)[0]
    assert attempt.verdict is not None and (attempt.verdict.author, attempt.verdict.cause) == ("operator", "it waits")
    assert unused(runtime) == ["JudgeItem"]


def test_a_verdict_on_a_version_is_none_on_the_next_one(opened: Callable[..., SessionRuntime]) -> None:
    """Its author typed while another version was written and tried."""
    runtime = opened(critic="none")
    step = step_to(runtime, loop.Code)
    runtime.ask = lambda call: CodeReply(source=IDLE.format(name=step.item), note="")  # type: ignore
    do(runtime, step)
    do(runtime, step_to(runtime, loop.Trial))
    seen = {"success": False, "cause": "it waits", "sub_action": step.item, "version": 1}
    assert told(runtime, "verdict", seen) == "applied"
    do(runtime, step_to(runtime, loop.Code))
    do(runtime, step_to(runtime, loop.Trial))
    assert [a.version for a in runtime.history.attempts_of(step.item)] == [1, 2]
    assert told(runtime, "verdict", seen) == "refused"
    assert "by now v2 was tried" in list(runtime.history.commands.values())[-1].reason
    assert told(runtime, "verdict", seen | {"version": 2}) == "applied"
    assert told(runtime, "verdict", seen | {"version": 2, "success": True}) == "refused"
    assert "an operator has judged v2" in list(runtime.history.commands.values())[-1].reason


def test_an_end_that_was_meant_for_one_training_does_not_end_the_next(opened: Callable[..., SessionRuntime]) -> None:
    runtime = opened(method={"arm": "rl"})
    step_to(runtime, loop.Train)
    with runtime.writer.transaction() as tx:
        for number in (1, 2):
            tx.add(
                tables.TrainingRun(sub_task=0, iteration=0, revision=1, run=number, config_hash="", env_steps_planned=9)
            )
        tx.event(events.TrainingEnded(run=1, state="finished", reason="", env_steps=0, decisions=0, updates=0))
    assert told(runtime, "stop_training", {"run": 1}) == "refused"
    assert not runtime.history.training_stop_requested
    assert told(runtime, "stop_training", {"run": 2}) == "applied"
    assert runtime.history.training_stop_requested


def test_a_training_that_still_collects_where_it_begins_can_be_ended(opened: Callable[..., SessionRuntime]) -> None:
    """Its run has no row yet."""
    runtime = opened(method={"arm": "rl"})
    runtime.writer.event(events.Phase(name="Plan"))
    assert told(runtime, "stop_training", {}) == "refused"
    step_to(runtime, loop.Train)
    runtime.writer.event(events.Phase(name="Train"))
    assert told(runtime, "stop_training", {"run": 1}) == "refused"
    assert told(runtime, "stop_training", {}) == "applied"
    assert runtime.history.training_stop_requested


def test_a_reward_of_the_operator_stays_that_came_while_the_configuration_was_asked_for(
    opened: Callable[..., SessionRuntime],
) -> None:
    runtime = opened(method={"arm": "rl"})
    first = step_to(runtime, loop.Configure)
    do(runtime, first)
    pin = [{"op": "pin", "name": runtime.history.plans[1].items[0].name}]
    assert told(runtime, "override", {"edits": pin, "apply": "now"}, 1) == "applied"
    again = step_to(runtime, loop.Configure)
    reward = "def reward(before, view):\n    return 0.01\n"
    while_asked(runtime, lambda: told(runtime, "edit_reward", {"source": reward, "apply": "now"}))
    do(runtime, again)
    iteration = runtime.history.iteration
    assert iteration is not None and iteration.config is not None
    assert (iteration.config.author, iteration.config.revision) == ("operator", 3)
    assert loop.next_step(runtime.history, runtime.limits) == loop.Train(3, None)


@pytest.mark.parametrize("apply", ["now", "next"])
def test_code_of_the_operator_is_measured_that_came_while_the_code_before_it_was(
    apply: str, opened: Callable[..., SessionRuntime]
) -> None:
    """Else the session would report for the new code what the old one did."""
    runtime = opened(critic="none")
    step = step_to(runtime, loop.Evaluate)
    item = runtime.history.plans[1].items[0]
    good = runtime.source(runtime.history.attempts[0].source_hash) + "# by hand\n"
    edit = {"sub_action": item.name, "source": good, "apply": apply}
    worker.STEPS[loop.Evaluate](runtime, step)
    state = told(runtime, "edit_code", edit, runtime.history.revision)
    if apply == "next":
        assert (state, runtime.history.revision) == ("seen", 1)
        return
    assert step_to(runtime, loop.Trial) == loop.Trial(item.name, 2)
    do(runtime, loop.Trial(item.name, 2))
    plan = runtime.history.plan
    assert plan is not None and plan.acts(item.name) == 2
    assert loop.next_step(runtime.history, runtime.limits) == step
    do(runtime, step)
    iteration = runtime.history.iteration
    assert iteration is not None and [e.revision for e in iteration.evaluations] == [1, 2]


def test_a_plan_that_the_operator_rejected_in_the_last_moment_is_not_approved_by_the_time_out(
    opened: Callable[..., SessionRuntime], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = opened(review=True, review_timeout=1.0, review_then="continue")
    step = step_to(runtime, loop.Wait)
    now = iter([0.0, 0.0])
    clock = SimpleNamespace(monotonic=lambda: next(now, 61.0), sleep=time.sleep)
    monkeypatch.setattr(waiting, "time", clock)  # of this module alone: others look at the clock too
    send(runtime.folder, parse_command("reject", {"text": "no"}), step.revision)
    runtime.inbox.look()
    waiting.wait(runtime, step)
    assert (runtime.history.revision, runtime.history.plans[1].status) == (0, "rejected")


def test_a_budget_that_was_raised_while_a_call_was_refused_for_it_lets_the_session_go_on(
    opened: Callable[..., SessionRuntime], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = opened()
    plan, asked = worker.STEPS[loop.Plan], []

    def refused_once(runtime: SessionRuntime, step: loop.Plan) -> None:
        asked.append(step)
        if len(asked) > 1:
            plan(runtime, step)
            return
        assert told(runtime, "budget", {"name": "tokens", "value": 1_000_000}) == "applied"
        raise BudgetReached("the budget of 1 tokens is used up")

    monkeypatch.setitem(worker.STEPS, loop.Plan, refused_once)
    worker.run(runtime)
    assert len(asked) == 2 and runtime.history.result == "succeeded", runtime.history.reason


def test_a_pause_in_the_moment_in_which_a_server_goes_away_is_shown_as_a_pause(
    opened: Callable[..., SessionRuntime],
) -> None:
    runtime = opened()

    class Paused:
        """The writer of a session that the loop's thread pauses just before the thread of a call writes."""

        def __getattr__(self, name: str) -> Any:
            if name != "history" and not runtime.history.pause_requested:
                runtime.writer.event(events.PauseRequested(author="operator"))
                runtime.writer.event(events.Waiting("paused"))
            return getattr(runtime.writer, name)

    journal = StoreJournal(Paused(), runtime.reader, runtime.settings)  # type: ignore[arg-type]
    journal.waiting("slow", "it says nothing")
    assert runtime.history.pause_requested and runtime.history.status == "paused"


def test_code_of_the_operator_is_for_the_plan_that_waits_for_approval(opened: Callable[..., SessionRuntime]) -> None:
    """It is the one that the operator looks at: what it leaves to RL would never be tried, what only it has must be."""
    runtime = opened(review=True, critic="none")
    step_to(runtime, loop.Wait)
    waiting = runtime.history.pending_plan
    assert waiting is not None and runtime.history.plan is None
    item = waiting.items[0]
    code = {"sub_action": item.name, "source": IDLE.format(name=item.name), "apply": "now"}
    left_to_rl = [{"op": "set", "name": item.name, "mode": "rl"}]
    assert told(runtime, "override", {"edits": left_to_rl, "apply": "now"}, waiting.revision) == "applied"
    assert told(runtime, "edit_code", code) == "refused"
    back = [{"op": "set", "name": item.name, "mode": "code"}]
    assert told(runtime, "override", {"edits": back, "apply": "now"}, waiting.revision + 1) == "applied"
    assert told(runtime, "edit_code", code) == "applied"
    assert told(runtime, "edit_code", {**code, "sub_action": "nothing"}) == "refused"
    assert told(runtime, "approve", {}, waiting.revision + 2) == "applied"
    assert step_to(runtime, loop.Trial) == loop.Trial(item.name, 1)


def test_an_edit_for_the_next_iteration_of_a_plan_that_nobody_saw_is_refused(
    opened: Callable[..., SessionRuntime],
) -> None:
    """It would not be known what to wait for, and it would be done at once."""
    runtime = opened()
    step_to(runtime, loop.Code)
    pin = {"edits": [{"op": "pin", "name": runtime.history.plans[1].items[0].name}], "apply": "next"}
    assert told(runtime, "override", pin, 99) == "refused"
    assert told(runtime, "override", pin, 1) == "seen"
    assert runtime.history.revision == 1


def test_a_reward_for_the_next_iteration_waits_for_the_configuration_of_that(
    opened: Callable[..., SessionRuntime],
) -> None:
    """Its plan comes first: decided then, the reward would find nothing to stand in."""
    budget = {"env_steps": 600}
    runtime = opened(task="collect_diamond", loop={**LOOP, "iterations": 1}, budget=budget, critic="none")
    step_to(runtime, loop.Code)
    left_to_rl = [{"op": "set", "name": runtime.history.plans[1].items[0].name, "mode": "rl"}]
    assert told(runtime, "override", {"edits": left_to_rl, "apply": "now"}, 1) == "applied"
    step_to(runtime, loop.Train)
    for value, why in (
        ("10**9", "rule syntax element, line 2: `**` is not available"),
        ("'much'", "rule dry run: on a recorded view: TypeError: `reward` must return a number"),
    ):
        refused = {"source": f"def reward(before, view):\n    return {value}\n", "apply": "now"}
        assert told(runtime, "edit_reward", refused, runtime.history.revision) == "refused"
        assert list(runtime.history.commands.values())[-1].reason.startswith(why)
    reward = {"source": "def reward(before, view):\n    return 0.01\n", "apply": "next"}
    assert told(runtime, "edit_reward", reward, runtime.history.revision) == "seen"
    again = step_to(runtime, loop.Plan)
    do(runtime, again)
    runtime.apply(runtime)
    assert list(runtime.history.commands.values())[-1].state == "seen" and runtime.history.plan is not None
    while runtime.history.iteration is None or runtime.history.iteration.config is None:
        step = loop.next_step(runtime.history, runtime.limits)
        worker._announce(runtime, step)
        do(runtime, step)
        runtime.apply(runtime)
    assert list(runtime.history.commands.values())[-1].state == "applied"
    config = runtime.history.iteration.config
    assert config.author == "operator" and "generated" in [term["term"] for term in config.config["reward"]]
    assert step_to(runtime, loop.Train).revision == runtime.history.revision
