"""What each command of the operator does, at a safe point of the loop.

Every command ends as an event `command` with state applied or refused and the reason; what it changes is
written in the same transaction. Edits of the plan are refused if their author saw an older revision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlgpt.store import tables
from rlgpt.store.history import PlanState
from rlgpt.store.writer import Transaction
from rlgpt.training.admitting import admit, admit_version
from rlgpt.training.configs import config_row
from rlgpt.training.inbox import Command, fate
from rlgpt.training.live import Live
from rlgpt.training.measuring import measure
from rlgpt.training.overrides import Refused, apply_edits
from rlgpt.training.plans import write_plan
from rlgpt.training.rehearsal import place

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


def _next_has_come(live: Live, command: Command) -> bool:
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


def decide(live: Live, command: Command, training: bool) -> None:
    act = _ACTS.get(command.kind)
    here = place(live.history, live.clock)
    with live.writer.transaction(durable=True) as tx:
        try:
            if act is None:
                raise Refused(f"there is no command called {command.kind!r}")
            if live.history.status == "ended":
                raise Refused("the session has ended")
            act(live, tx, command.payload, command)
        except Refused as error:
            tx.event("command", **fate(command, "refused", str(error), here))
        else:
            tx.event("command", **fate(command, "applied", "", here))


# ---- one function a kind: (live, tx, payload, command) -> None, or Refused before anything is added ----------
def _pause(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    if live.history.pause_requested:
        raise Refused("the session is paused already")
    tx.event("pause_requested", author=command.author)


def _resume(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    if not live.history.pause_requested:
        raise Refused("the session is not paused")
    tx.event("resume_requested", author=command.author)


def _stop(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    tx.event("stop_requested", author=command.author, now=bool(payload.get("now")))


def _budget(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    name, value = payload.get("name"), payload.get("value")
    if name not in ("env_steps", "cost", "tokens", "hours"):
        raise Refused(f"there is no budget called {name!r}; there are env_steps, cost, tokens and hours")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        raise Refused(f"a budget is a number from 0, or nothing for no limit, not {value!r}")
    tx.event("budget", name=name, value=value, author=command.author)


def _advise(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    agent, text = payload.get("agent"), str(payload.get("text", "")).strip()
    if agent not in ("slow", "fast", "planner", "critic"):
        raise Refused(f"there is no agent called {agent!r}; there are planner, slow, fast and critic")
    if not text:
        raise Refused("the advice is empty")
    tx.event("advice", agent=agent, text=text, author=command.author)


def _approve(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    plan = _waiting(live, payload.get("revision", command.revision))
    tx.event("plan_approved", revision=plan.revision, author=command.author)
    tx.event("plan_in_force", revision=plan.revision)


def _reject(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    plan = _waiting(live, payload.get("revision", command.revision))
    text = str(payload.get("text", "")).strip()
    tx.event("plan_rejected", revision=plan.revision, author=command.author, text=text)
    if text:
        tx.event("advice", agent="slow", text=text, author=command.author)


def _waiting(live: Live, revision: object) -> PlanState:
    plan = live.history.pending_plan
    if plan is None:
        raise Refused("no plan waits for approval")
    if revision is not None and revision != plan.revision:
        raise Refused(f"you saw revision {revision}, the plan that waits is revision {plan.revision}")
    return plan


def _override(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    plan = live.history.pending_plan or live.history.plan
    if plan is None:
        raise Refused("there is no plan yet")
    later = payload.get("apply") == "next"
    if not later and command.revision is not None and command.revision != plan.revision:
        raise Refused(
            f"you saw revision {command.revision}, by now it is revision {plan.revision}: look at it and edit again"
        )
    executor, items = apply_edits(plan, payload.get("edits") or [])
    write_plan(live, tx, plan.iteration, plan.sub_task, "operator", executor, plan.rationale, items, depth=plan.depth)


def _edit_code(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    plan = live.history.plan
    item = plan.item(str(payload.get("sub_action"))) if plan else None
    if plan is None or item is None:
        raise Refused(f"the plan in force has no sub-action {payload.get('sub_action')!r}")
    if item.mode != "code":
        raise Refused(f"{item.name} is left to RL; set its mode to code first")
    source = str(payload.get("source", ""))
    version = admit_version(live, item, source, author="operator", attempt=0, note="edited by the operator")
    if not version.admitted:
        admission = version.admission
        raise Refused(f"line {admission['line']}: {admission['message']} ({admission['rule']})")
    tx.add(version)


def _edit_reward(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    """A reward function of the operator's in the configuration in force: a new revision, trained anew."""
    history = live.history
    plan, iteration = history.plan, history.iteration
    if plan is None or iteration is None or iteration.config is None:
        raise Refused("there is no RL configuration yet")
    source = str(payload.get("source", ""))
    admission = admit(live, "reward", source)
    if not admission.admitted:
        raise Refused(f"line {admission.line}: {admission.message} ({admission.rule})")
    term = {"term": "generated", "argument": live.writer.text(source), "weight": float(payload.get("weight", 1.0))}
    config = dict(iteration.config.config)
    config["reward"] = [t for t in config["reward"] if t["term"] != "generated"] + [term]
    revision = write_plan(
        live, tx, plan.iteration, plan.sub_task, "operator", plan.executor, plan.rationale, plan.items, depth=plan.depth
    )
    tx.add(config_row(iteration, revision, "operator", config, "reward edited by the operator"))


def _verdict(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    history = live.history
    name = payload.get("sub_action")
    iteration, plan = history.iteration, history.plan
    if iteration is None or plan is None:
        raise Refused("there is nothing to judge yet")
    if not isinstance(payload.get("success"), bool):
        raise Refused("a verdict says success: true or false")
    version = None
    if name is not None:
        attempts = history.attempts_of(str(name))
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
            success=payload["success"],
            confidence=float(payload.get("confidence", 1.0)),
            cause=str(payload.get("cause", "")),
            advice_slow=str(payload.get("advice_slow", "")),
            advice_fast=str(payload.get("advice_fast", "")),
            measured=measured,
            better=better,
        )
    )


def _stop_training(live: Live, tx: Transaction, payload: Mapping[str, Any], command: Command) -> None:
    if not any(run.state == "running" for run in live.history.runs.values()):
        raise Refused("no training is running")
    tx.event("training_stop_requested", author=command.author)


Act = Callable[[Live, Transaction, Mapping[str, Any], Command], None]
_ACTS: dict[str, Act] = {
    "pause": _pause, "resume": _resume, "stop": _stop, "budget": _budget, "advise": _advise,
    "approve": _approve, "reject": _reject, "override": _override, "edit_code": _edit_code,
    "edit_reward": _edit_reward, "verdict": _verdict, "stop_training": _stop_training,
}  # fmt: skip
