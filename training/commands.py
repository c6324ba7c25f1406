"""What each command of the operator does, at a safe point of the loop.

Every command ends as an event `command` with state applied or refused and the reason; what it changes is
written in the same transaction. Edits of the plan are refused if their author saw an older revision.
"""

from __future__ import annotations

from rlgpt.store import commands, tables
from rlgpt.store.errors import BadCommand
from rlgpt.store.history import PlanState
from rlgpt.store.plan_edits import BadEdit, apply_edits
from rlgpt.store.states import MODEL
from rlgpt.store.writer import Queued, Transaction
from rlgpt.training.admitting import admit, admit_version
from rlgpt.training.configs import config_row
from rlgpt.training.decisions import write_decisions
from rlgpt.training.inbox import fate
from rlgpt.training.live import Live
from rlgpt.training.measuring import measure
from rlgpt.training.plans import write_plan
from rlgpt.training.rehearsal import place


class Refused(ValueError):
    """The argument is the sentence for the operator."""


LATER = ("override", "edit_code", "edit_reward")
"""Kinds that may wait for the next iteration (`apply: next`)."""


def apply_pending(live: Live, training: bool) -> None:
    """Decide every command that can be decided now; a signal to end is a stop like any other."""
    _decide_pending(live, training)
    while live.rehearsal.due(live.history, live.clock):
        live.rehearsal.give(live.folder)
        live.inbox.look()
        _decide_pending(live, training)


def _decide_pending(live: Live, training: bool) -> None:
    if live.stop_signal and not live.history.stop_requested:
        live.writer.event("stop_requested", author="signal", now=False)
    for command in live.inbox.pending():
        if command.kind in LATER and command.payload.get("apply") == "next" and not _next_has_come(live, command):
            continue
        decide(live, command, training)
        live.inbox.decided(command)
        write_decisions(live.writer)


def _next_has_come(live: Live, command: Queued) -> bool:
    """Whether the slow agent has planned a later iteration than the one the author looked at."""
    seen = live.history.plans.get(command.revision or 0)
    plan = live.history.pending_plan or live.history.plan
    if seen is None or plan is None:
        return True
    return (plan.sub_task, plan.iteration) > (seen.sub_task, seen.iteration)


def expire(live: Live) -> None:
    """What nobody decided before the end."""
    for command in live.inbox.pending():
        live.writer.event("command", **fate(command, "expired", "the session ended first"))
        live.inbox.decided(command)


def decide(live: Live, queued: Queued, training: bool) -> None:
    here = place(live.history, live.clock)
    with live.writer.transaction(durable=True) as tx:
        try:
            if live.history.status == "ended":
                raise Refused("the session has ended")
            _act(live, tx, commands.parse_command(queued.kind, queued.payload), queued.revision, queued.author)
        except (Refused, BadEdit, BadCommand) as error:
            tx.event("command", **fate(queued, "refused", str(error), here))
        else:
            tx.event("command", **fate(queued, "applied", "", here))


def _act(live: Live, tx: Transaction, command: commands.Command, revision: int | None, author: str) -> None:
    """What a command does; `revision`: the plan its author saw. Raises Refused or BadEdit before anything is added."""
    match command:
        case commands.Pause():
            if live.history.pause_requested:
                raise Refused("the session is paused already")
            tx.event("pause_requested", author=author)
        case commands.Resume():
            if not live.history.pause_requested and live.history.waiting_for != MODEL:
                raise Refused("the session is not paused")
            live.client.try_now()
            if live.history.pause_requested:
                tx.event("resume_requested", author=author)
        case commands.Stop():
            tx.event("stop_requested", author=author, now=command.now)
        case commands.SetBudget():
            if command.name == "cost" and command.value is not None and not live.client.priced:
                unknown = "the price of the model is unknown; set the budget of tokens"
                raise Refused(f"a budget in USD cannot hold: {unknown}")
            tx.event("budget", name=command.name, value=command.value, author=author)
        case commands.Advise():
            if not command.text.strip():
                raise Refused("the advice is empty")
            tx.event("advice", agent=command.agent, text=command.text.strip(), author=author)
        case commands.StopTraining():
            if not any(run.state == "running" for run in live.history.runs.values()):
                raise Refused("no training is running")
            tx.event("training_stop_requested", author=author)
        case commands.Approve():
            plan = _waiting_plan(live, revision)
            tx.event("plan_approved", revision=plan.revision, author=author)
            tx.event("plan_in_force", revision=plan.revision)
        case commands.Reject():
            plan, text = _waiting_plan(live, revision), command.text.strip()
            tx.event("plan_rejected", revision=plan.revision, author=author, text=text)
            if text:
                tx.event("advice", agent="slow", text=text, author=author)
        case commands.Override():
            _override(live, tx, command, revision)
        case commands.EditCode():
            _edit_code(live, tx, command)
        case commands.EditReward():
            _edit_reward(live, tx, command)
        case commands.Verdict():
            _verdict(live, tx, command)


def _waiting_plan(live: Live, revision: int | None) -> PlanState:
    plan = live.history.pending_plan
    if plan is None:
        raise Refused("no plan waits for approval")
    if revision is not None and revision != plan.revision:
        raise Refused(f"you saw revision {revision}, the plan that waits is revision {plan.revision}")
    return plan


def _override(live: Live, tx: Transaction, command: commands.Override, revision: int | None) -> None:
    plan = live.history.pending_plan or live.history.plan
    if plan is None:
        raise Refused("there is no plan yet")
    if command.apply == "now" and revision is not None and revision != plan.revision:
        raise Refused(f"you saw revision {revision}, by now it is revision {plan.revision}: look at it and edit again")
    executor, items = apply_edits(plan, command.edits)
    if (executor, items) == (plan.executor, plan.items):
        raise Refused("the edit changes nothing")
    write_plan(live, tx, plan.iteration, plan.sub_task, "operator", executor, plan.rationale, items, depth=plan.depth)


def _edit_code(live: Live, tx: Transaction, command: commands.EditCode) -> None:
    plan = live.history.plan
    item = plan.item(command.sub_action) if plan else None
    if plan is None or item is None:
        raise Refused(f"the plan in force has no sub-action {command.sub_action!r}")
    if item.mode != "code":
        raise Refused(f"{item.name} is left to RL; set its mode to code first")
    version = admit_version(live, item, command.source, author="operator", attempt=0, note="edited by the operator")
    if not version.admitted:
        admission = version.admission
        raise Refused(f"line {admission['line']}: {admission['message']} ({admission['rule']})")
    tx.add(version)


def _edit_reward(live: Live, tx: Transaction, command: commands.EditReward) -> None:
    """A reward function of the operator's in the configuration in force: a new revision, trained anew."""
    history = live.history
    plan, iteration = history.plan, history.iteration
    if plan is None or iteration is None or iteration.config is None:
        raise Refused("there is no RL configuration yet")
    admission = admit(live, "reward", command.source)
    if not admission.admitted:
        raise Refused(f"line {admission.line}: {admission.message} ({admission.rule})")
    term = {"term": "generated", "argument": live.writer.text(command.source), "weight": command.weight}
    config = dict(iteration.config.config)
    config["reward"] = [t for t in config["reward"] if t["term"] != "generated"] + [term]
    revision = write_plan(
        live, tx, plan.iteration, plan.sub_task, "operator", plan.executor, plan.rationale, plan.items, depth=plan.depth
    )
    tx.add(config_row(iteration, revision, "operator", config, "reward edited by the operator"))


def _verdict(live: Live, tx: Transaction, command: commands.Verdict) -> None:
    history = live.history
    name = command.sub_action
    iteration, plan = history.iteration, history.plan
    if iteration is None or plan is None:
        raise Refused("there is nothing to judge yet")
    version = None
    if name is not None:
        attempts = history.attempts_of(name)
        if not attempts or attempts[-1].trial is None:
            raise Refused(f"no trial of {name!r} waits for a verdict")
        version = attempts[-1].version
        measured: bool | None = attempts[-1].trial.outcome == "accepted"
        better = ""
    else:
        if live.limits.critic != "human" or not any(
            e.split == "dev" and e.revision == plan.revision for e in iteration.evaluations
        ):
            raise Refused("the iteration does not wait for an operator's verdict")
        measured, better, _ = measure(live)
    tx.add(
        tables.Verdict(
            sub_task=iteration.sub_task,
            iteration=iteration.number,
            revision=plan.revision,
            sub_action=name,
            version=version,
            author="operator",
            success=command.success,
            confidence=command.confidence,
            cause=command.cause,
            advice_slow=command.advice_slow,
            advice_fast=command.advice_fast,
            measured=measured,
            better=better,
        )
    )
