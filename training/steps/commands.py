"""What each command of the operator does, at a safe point of the loop.

Every command ends as an event `command` with state applied or refused and the reason; what it changes is
written in the same transaction. Edits of the plan are refused if their author saw an older revision.
"""

from __future__ import annotations

from rlgpt.agents import choice, loop
from rlgpt.store import commands, events
from rlgpt.store.errors import BadCommand
from rlgpt.store.history import PlanState
from rlgpt.store.plan_edits import BadEdit, apply_edits
from rlgpt.store.row_types import tell_refusal
from rlgpt.store.states import MODEL
from rlgpt.store.writer import Queued, Transaction
from rlgpt.training.session.command_replay import place
from rlgpt.training.session.inbox import fate
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.admission import admit, admit_version
from rlgpt.training.steps.comparison import measure
from rlgpt.training.steps.config_rows import config_row
from rlgpt.training.steps.decision_rows import write_decisions
from rlgpt.training.steps.plan_check import wrong_with_edits
from rlgpt.training.steps.plan_rows import write_plan
from rlgpt.training.steps.result_rows import verdict_row


class CommandRefused(ValueError):
    """The argument is the sentence for the operator."""


LATER = ("override", "edit_code", "edit_reward")
"""Kinds that may wait for the next iteration (`apply: next`)."""
SIGNAL = "signal"
"""Author of a stop that the system asked for."""
MEASURING = ("Train", "Evaluate", "JudgeIteration")
"""Steps that measure a plan revision with the code that it has."""


def apply_pending(runtime: SessionRuntime) -> None:
    """Decide every command that can be decided now; a signal to end is a stop like any other."""
    _decide_pending(runtime)
    while runtime.command_replay.due(runtime.history, runtime.clock):
        runtime.command_replay.give(runtime.folder)
        runtime.inbox.look()
        _decide_pending(runtime)


def _decide_pending(runtime: SessionRuntime) -> None:
    if runtime.stop_signal and not runtime.history.stop_requested:
        runtime.writer.event(events.StopRequested(author=SIGNAL, now=False))
    for command in runtime.inbox.pending():
        if command.kind in LATER and command.payload.get("apply") == "next" and not _next_has_come(runtime, command):
            continue
        decide(runtime, command)
        runtime.inbox.decided(command)
        write_decisions(runtime.writer)


def _next_has_come(runtime: SessionRuntime, command: Queued) -> bool:
    """Whether the slow agent has planned a later iteration than the one the author looked at; for a reward, whether
    that has a configuration in which it could stand: one that trains nothing is passed over."""
    history = runtime.history
    edited_plan = history.plans.get(command.revision or 0)
    plan = history.pending_plan or history.plan
    if edited_plan is None or plan is None:
        return True
    if (plan.sub_task, plan.iteration) <= (edited_plan.sub_task, edited_plan.iteration):
        return False
    if command.kind != "edit_reward":
        return True
    return plan is history.plan and history.iteration is not None and history.iteration.config is not None


def expire(runtime: SessionRuntime) -> None:
    """What nobody decided before the end."""
    for command in runtime.inbox.pending():
        runtime.writer.event(fate(command, "expired", "the session ended first"))
        runtime.inbox.decided(command)


def decide(runtime: SessionRuntime, queued: Queued) -> None:
    here = place(runtime.history, runtime.clock)
    with runtime.writer.transaction(durable=True) as tx:
        try:
            if runtime.history.status == "ended":
                raise CommandRefused("the session has ended")
            _need_plan_seen(runtime, queued)
            _act(runtime, tx, commands.parse_command(queued.kind, queued.payload), queued.revision, queued.author)
        except (CommandRefused, BadEdit, BadCommand) as error:
            tx.event(fate(queued, "refused", str(error), here))
        else:
            tx.event(fate(queued, "applied", "", here))


def _need_plan_seen(runtime: SessionRuntime, queued: Queued) -> None:
    """What waits for the iteration after the one that its author saw cannot wait for a plan that nobody saw."""
    history = runtime.history
    if queued.payload.get("apply") == "next" and queued.revision and queued.revision not in history.plans:
        newest = max(history.plans, default=0)
        raise CommandRefused(f"you cannot have seen revision {queued.revision}: the newest plan is revision {newest}")


def _act(
    runtime: SessionRuntime, tx: Transaction, command: commands.Command, revision: int | None, author: str
) -> None:
    """What a command does; `revision`: the plan its author saw.

    Raises CommandRefused or BadEdit before anything is added.
    """
    match command:
        case commands.Pause():
            if runtime.history.pause_requested:
                raise CommandRefused("the session is paused already")
            tx.event(events.PauseRequested(author=author))
        case commands.Resume():
            if not runtime.history.pause_requested and runtime.history.waiting_for != MODEL:
                raise CommandRefused("the session is not paused")
            runtime.client.try_now()
            if runtime.history.pause_requested:
                tx.event(events.ResumeRequested(author=author))
        case commands.Stop():
            tx.event(events.StopRequested(author=author, now=command.now))
        case commands.SetBudget():
            if command.name == "cost" and command.value is not None and not runtime.client.priced:
                unknown = "the price of the model is unknown; set the budget of tokens"
                raise CommandRefused(f"a budget in USD cannot hold: {unknown}")
            tx.event(events.Budget(name=command.name, value=command.value, author=author))
        case commands.Advise():
            if not command.text.strip():
                raise CommandRefused("the advice is empty")
            tx.event(events.Advice(agent=command.agent, text=command.text.strip(), author=author))
        case commands.StopTraining():
            running = [run.run for run in runtime.history.runs.values() if run.state == "running"]
            # Its row is written once the states are collected that its episodes begin from.
            begins = runtime.history.phase.name == loop.Train.__name__ and command.run is None
            if not running and not begins:
                raise CommandRefused("no training is running")
            if running and command.run is not None and command.run not in running:
                raise CommandRefused(f"PPO run {command.run}, which you saw, has ended; by now it is run {running[-1]}")
            tx.event(events.TrainingStopRequested(author=author))
        case commands.CancelCall():
            if not runtime.client.cancel(author):
                raise CommandRefused("no call to a model is under way")
        case commands.Approve():
            plan = _waiting_plan(runtime, revision)
            tx.event(events.PlanApproved(revision=plan.revision, author=author))
            tx.event(events.PlanInForce(plan.revision))
        case commands.Reject():
            plan, text = _waiting_plan(runtime, revision), command.text.strip()
            tx.event(events.PlanRejected(revision=plan.revision, author=author, text=text))
            if text:
                tx.event(events.Advice(agent="slow", text=text, author=author))
        case commands.Override():
            _override(runtime, tx, command, revision)
        case commands.EditCode():
            _edit_code(runtime, tx, command)
        case commands.EditReward():
            _edit_reward(runtime, tx, command)
        case commands.Verdict():
            _verdict(runtime, tx, command)


def _waiting_plan(runtime: SessionRuntime, revision: int | None) -> PlanState:
    plan = runtime.history.pending_plan
    if plan is None:
        raise CommandRefused("no plan waits for approval")
    if revision is not None and revision != plan.revision:
        raise CommandRefused(f"you saw revision {revision}, the plan that waits is revision {plan.revision}")
    return plan


def _override(runtime: SessionRuntime, tx: Transaction, command: commands.Override, revision: int | None) -> None:
    plan = runtime.history.pending_plan or runtime.history.plan
    if plan is None:
        raise CommandRefused("there is no plan yet")
    if command.apply == "now" and revision is not None and revision != plan.revision:
        raise CommandRefused(
            f"you saw revision {revision}, by now it is revision {plan.revision}: look at it and edit again"
        )
    executor, items = apply_edits(plan, command.edits)
    if (executor, items) == (plan.executor, plan.items):
        raise CommandRefused("the edit changes nothing")
    if mistakes := wrong_with_edits(runtime, plan.items, items):
        raise CommandRefused(mistakes)
    write_plan(
        runtime, tx, plan.iteration, plan.sub_task, "operator", executor, plan.rationale, items, depth=plan.depth
    )


def _edit_code(runtime: SessionRuntime, tx: Transaction, command: commands.EditCode) -> None:
    waiting = runtime.history.pending_plan
    plan = waiting or runtime.history.plan
    item = plan.item(command.sub_action) if plan else None
    named = "the plan that waits for approval" if waiting else "the plan in force"
    if plan is None or item is None:
        raise CommandRefused(f"{named} has no sub-action {command.sub_action!r}")
    if item.mode == "rl":
        raise CommandRefused(f"{named} leaves {item.name} to RL; set its mode to code first")
    version = admit_version(runtime, item, command.source, author="operator", attempt=0, note="edited by the operator")
    if not version.admitted:
        admission = version.admission
        raise CommandRefused(tell_refusal(admission["rule"], admission["line"], admission["message"]))
    if runtime.history.phase.name in MEASURING and waiting is None:
        _write_again(runtime, tx, plan)  # what was measured of this revision says nothing of the new code
    tx.add(version)


def _write_again(runtime: SessionRuntime, tx: Transaction, plan: PlanState) -> int:
    """Write the same plan as a new revision by the operator: a training in progress ends, and the revision is measured
    anew."""
    return write_plan(
        runtime,
        tx,
        plan.iteration,
        plan.sub_task,
        "operator",
        plan.executor,
        plan.rationale,
        plan.items,
        depth=plan.depth,
    )


def _edit_reward(runtime: SessionRuntime, tx: Transaction, command: commands.EditReward) -> None:
    """Put the operator's reward function into the configuration in force: a new revision, which is trained anew."""
    history = runtime.history
    plan, iteration = history.plan, history.iteration
    if plan is None or iteration is None or iteration.config is None:
        raise CommandRefused("there is no RL configuration yet")
    if history.pending_plan is not None:
        raise CommandRefused("a plan waits for approval: approve or reject it first")
    admission = admit(runtime, "reward", command.source)
    if not admission.admitted:
        raise CommandRefused(tell_refusal(admission.rule, admission.line, admission.message))
    term = {"term": "generated", "argument": runtime.writer.text(command.source), "weight": command.weight}
    config = dict(iteration.config.config)
    config["reward"] = [t for t in config["reward"] if t["term"] != "generated"] + [term]
    revision = _write_again(runtime, tx, plan)
    tx.add(config_row(iteration, revision, "operator", config, "reward edited by the operator"))


def _verdict(runtime: SessionRuntime, tx: Transaction, command: commands.Verdict) -> None:
    history = runtime.history
    name = command.sub_action
    iteration, plan = history.iteration, history.plan
    if iteration is None or plan is None:
        raise CommandRefused("there is nothing to judge yet")
    version = None
    if name is not None:
        attempts = history.attempts_of(name)
        if not attempts or attempts[-1].trial is None:
            raise CommandRefused(f"no trial of {name!r} waits for a verdict")
        judged = choice.best_draft(choice.rounds(attempts)[-1])  # the one that the loop waits for
        version = judged.version
        if judged.verdict is not None and judged.verdict.author == "operator":
            raise CommandRefused(f"an operator has judged v{version} of {name} already")
        if command.version is not None and version > command.version:
            raise CommandRefused(f"you saw v{command.version} of {name}, by now v{version} was tried: look at it first")
        measured: bool | None = judged.trial is not None and judged.trial.outcome == "accepted"
        better = ""
    else:
        if runtime.limits.critic != "human" or not any(
            e.split == "dev" and e.revision == plan.revision for e in iteration.evaluations
        ):
            raise CommandRefused("the iteration does not wait for an operator's verdict")
        if iteration.closed:
            raise CommandRefused(f"iteration {iteration.number} has its verdict already")
        measured, better, _ = measure(runtime)
    tx.add(
        verdict_row(
            "operator",
            iteration.sub_task,
            iteration.number,
            plan.revision,
            command,
            measured,
            sub_action=name,
            version=version,
            better=better,
        )
    )
