"""The fold: one function that adds a row to the state of a session.

`fold(history, table, row)` is total over rows in `seq` order. The loop asks this state for the next step,
the console draws it, replay is the same fold up to a cursor. Pure: no SQL, no clock, no I/O.

Heavy rows (metric, frame, episode, log, llm_call texts) leave only sums here; panes read them as rows with
seq <= cursor, minus `Run.hidden`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rlgpt.store import event_payloads, events, row_types
from rlgpt.store.measured import EvaluationState, Measured, pool
from rlgpt.store.row_types import Change, Row
from rlgpt.store.states import (
    AdviceState,
    Attempt,
    CheckpointState,
    CommandState,
    ConfigState,
    History,
    Item,
    IterationState,
    PlanState,
    Run,
    Spent,
    TaskPlanState,
    TrialState,
    VerdictState,
)

__all__ = [
    "Attempt",
    "CheckpointState",
    "CommandState",
    "ConfigState",
    "EvaluationState",
    "History",
    "Item",
    "IterationState",
    "Measured",
    "PlanState",
    "Run",
    "Spent",
    "TaskPlanState",
    "TrialState",
    "VerdictState",
    "fold",
    "fold_all",
    "pool",
]


def fold_all(rows: Iterable[Change], history: History | None = None) -> History:
    history = history or History()
    for table, row in rows:
        fold(history, table, row)
    return history


def fold(h: History, table: str, row: Row) -> None:
    """Fold one row, in place: what `row_types.ROWS` has for the table, of heavy tables what `query.FOLDED` names.
    Unknown tables and event kinds only move the cursor (additive schema)."""
    h.seq = row["seq"]
    h.incarnation = row["incarnation"]
    h.at, h.active = row["at"], row["active"]
    h.counts[table] = h.counts.get(table, 0) + 1
    step = _TABLES.get(table)
    if step:
        step(h, row)


def _picked(row: Mapping[str, object], keys: Iterable[str]) -> dict[str, Any]:
    return {key: row[key] for key in keys}


def _session(h: History, row: row_types.SessionRow) -> None:
    h.session = row.copy()
    h.started_at = row["at"]


def _task_plan(h: History, row: row_types.TaskPlanRow) -> None:
    keys = ("revision", "author", "sub_tasks", "reason", "seq")
    h.task_plans.append(TaskPlanState(**_picked(row, keys)))


def _iteration(h: History, row: row_types.IterationRow) -> None:
    h.iterations.append(IterationState(row["sub_task"], row["number"], row["seq"]))


def _plan(h: History, row: row_types.PlanRow) -> None:
    keys = (
        "sub_task", "iteration", "revision", "author", "executor", "rationale", "depth", "attempted", "seq",
    )  # fmt: skip
    h.plans[row["revision"]] = PlanState(**_picked(row, keys))
    if h.iteration:
        h.iteration.plans.append(row["revision"])


def _sub_action(h: History, row: row_types.SubActionRow) -> None:
    keys = ("name", "mode", "goal", "reason", "done_when", "max_steps", "author")
    item = Item(**_picked(row, keys), pinned=bool(row["pinned"]), trigger=row.get("trigger") or "")
    h.plans[row["revision"]].items.append(item)


def _code_version(h: History, row: row_types.CodeVersionRow) -> None:
    keys = (
        "sub_task", "iteration", "sub_action", "version", "attempt", "author", "source_hash", "note",
        "admission", "seq",
    )  # fmt: skip
    h.attempts.append(Attempt(**_picked(row, keys), admitted=bool(row["admitted"])))


def _trial(h: History, row: row_types.TrialRow) -> None:
    h.spent.env_steps += row["env_steps"]
    attempt = _attempt(h, row)
    if attempt:
        keys = (
            "iteration", "revision", "outcome", "episodes", "successes", "prefixes", "env_steps", "error",
            "seq", "evidence", "trials",
        )  # fmt: skip
        attempt.trial = TrialState(**_picked(row, keys), number=h.counts["trial"])
        attempt.done_when = row["done_when"]
        attempt.trials.append((attempt.done_when, attempt.trial))
        attempt.verdict = None


def _attempt(h: History, row: row_types.TrialRow | row_types.VerdictRow) -> Attempt | None:
    for attempt in reversed(h.attempts):
        if attempt.sub_action == row["sub_action"] and attempt.version == row["version"]:
            return attempt
    return None


def _rl_config(h: History, row: row_types.RlConfigRow) -> None:
    if h.iteration:
        keys = ("revision", "author", "config", "config_hash", "note", "seq")
        h.iteration.config = ConfigState(**_picked(row, keys))


def _training_run(h: History, row: row_types.TrainingRunRow) -> None:
    keys = (
        "run", "iteration", "revision", "config_hash", "env_steps_planned", "warm_from", "slots", "device",
        "explanation", "seq",
    )  # fmt: skip
    h.runs[row["run"]] = Run(**_picked(row, keys))
    if h.iteration:
        h.iteration.runs.append(row["run"])


def _metric(h: History, row: row_types.MetricRow) -> None:
    run = h.runs[row["run"]]
    h.spent.env_steps += row["env_steps"] - run.env_steps
    run.env_steps, run.decisions, run.updates = row["env_steps"], row["decisions"], row["update"]
    run.episodes += row["episodes"]
    run.successes += row["successes"]
    run.tally.append((run.updates, run.decisions, run.episodes, run.successes))


def _checkpoint(h: History, row: row_types.CheckpointRow) -> None:
    run = h.runs.get(row["run"])
    if run:
        keys = ("update", "env_steps", "artifact", "kind", "seq", "size")
        run.checkpoints.append(CheckpointState(**_picked(row, keys)))


def _evaluation(h: History, row: row_types.EvaluationRow) -> None:
    keys = [k for k in EvaluationState.__dataclass_fields__ if k != "failures" and k in row]
    recorded = row.get("failures")
    failures = recorded if isinstance(recorded, dict) else {}
    if h.iterations:
        owner = next(
            (i for i in h.iterations if (i.sub_task, i.number) == (row["sub_task"], row["iteration"])),
            h.iterations[-1],
        )
        owner.evaluations.append(EvaluationState(**_picked(row, keys), failures=failures))


def _verdict(h: History, row: row_types.VerdictRow) -> None:
    keys = ("author", "confidence", "cause", "advice_slow", "advice_fast", "better", "seq")
    measured = None if row["measured"] is None else bool(row["measured"])
    verdict = VerdictState(**_picked(row, keys), success=bool(row["success"]), measured=measured)
    if row["sub_action"] is None:
        if h.iteration:
            h.iteration.verdict = verdict
            h.iteration.reopened = False
    else:
        attempt = _attempt(h, row)
        if attempt:
            attempt.verdict = verdict


def _llm_call(h: History, row: row_types.LlmCallRow) -> None:
    if row["state"] == "sent":
        h.spent.calls += 1
        return
    h.spent.tokens += row["tokens_in"] + row["tokens_out"]
    if row["cost"] is None:
        h.spent.unknown_price = h.spent.unknown_price or bool(row["tokens_in"] + row["tokens_out"])
    else:
        h.spent.cost += row["cost"]


# ---- events ------------------------------------------------------------------------------------
def _event(h: History, row: row_types.EventRow) -> None:
    seq = row["seq"]
    match event_payloads.read_event(row["kind"], row["payload"]):
        case events.Phase() as phase:
            _next_phase(h, phase)
            h.status, h.waiting_for = "running", ""
        case events.Command() as fate:
            h.commands[fate.id] = CommandState(
                fate.id, fate.kind, fate.payload, fate.author, fate.revision, fate.state, fate.reason, seq
            )
        case events.VersionChosen() as chosen:
            h.plans[chosen.revision].chosen[chosen.item] = chosen
        case events.IterationResult() as result:
            for iteration in h.iterations:
                if (iteration.sub_task, iteration.number) == (result.sub_task, result.iteration):
                    iteration.result = result
        case events.Incumbent() as incumbent:
            h.incumbents[incumbent.sub_task] = incumbent
        case events.Started(where=where):
            h.status, h.where = "running", where or h.where
        case events.Resumed() as resumed:
            h.where = resumed.where or h.where
            _resumed(h, resumed, seq)
        case events.Waiting(for_=what):
            h.waiting_for, h.waiting_since = what, h.at
            h.status = "paused" if what == "paused" else "waiting"
        case events.Ended() as ended:
            h.status, h.result, h.reason, h.waiting_for = "ended", ended.status, ended.reason, ""
        case events.Forked():
            h.status, h.result, h.reason, h.waiting_for = "created", "", "", ""
            h.stop_requested, h.pause_requested = "", False
        case events.PlanInForce(revision=revision):
            _plan_in_force(h, revision)
        case events.PlanWaiting(revision=revision):
            for plan in h.plans.values():
                if plan.status == "waiting" and plan.revision != revision:
                    plan.status = "superseded"
            h.plans[revision].status = "waiting"
        case events.PlanRejected() as rejected:
            plan = h.plans[rejected.revision]
            plan.status, plan.rejection = "rejected", rejected.text
        case events.TrainingEnded() as ended_run:
            _training_ended(h, ended_run)
        case events.TrainingStopRequested():
            h.training_stop_requested = True
        case events.Advice() as advice:
            h.advice.append(AdviceState(advice.agent, advice.text, advice.author, seq))
        case events.Budget(name=name, value=value):
            h.budgets[name] = value
        case events.PauseRequested():
            h.pause_requested = True
        case events.ResumeRequested():
            h.pause_requested = False
        case events.StopRequested(now=now):
            h.stop_requested = "now" if now else "stop"
            h.pause_requested = False  # or a resume would wait for another
        case events.HostDeath(source_hash=source):
            h.host_deaths[source] = h.host_deaths.get(source, 0) + 1
        case events.Nondeterministic(cause=cause):
            h.nondeterministic.append(cause)
        case events.Probed() as probe:
            h.probes[probe.step] = h.probes.get(probe.step, 0) + 1
            h.spent.env_steps += probe.env_steps
            h.probe_steps.append((seq, probe.env_steps))
        case events.SkillKept() as skill:
            h.skills_kept.append(skill)
        case events.PlanApproved() | events.TrainerDied() | None:
            pass


def _next_phase(h: History, phase: events.Phase) -> None:
    if phase == h.phase:  # told again after a pause
        return
    if h.phase.name:
        amount, seconds = h.worked.get(h.phase.name, (0.0, 0.0))
        done = {"Evaluate": h.phase.episodes or 0, "Train": h.spent.env_steps - h.phase_env_steps}
        amount += done.get(h.phase.name, 1)
        h.worked[h.phase.name] = (amount, seconds + h.active - h.phase_active)
    h.phase, h.phase_active, h.phase_env_steps = phase, h.active, h.spent.env_steps


def _resumed(h: History, resumed: events.Resumed, seq: int) -> None:
    h.status, h.result, h.reason, h.waiting_for = "running", "", "", ""
    h.stop_requested = ""
    if resumed.run is None:
        return
    run, update, env_steps = h.runs[resumed.run], resumed.update or 0, resumed.env_steps or 0
    run.hidden.append((resumed.from_seq, seq))
    h.spent.env_steps -= run.env_steps - env_steps
    run.tally = [t for t in run.tally if t[0] <= update]
    run.checkpoints = [c for c in run.checkpoints if c.seq <= resumed.from_seq]
    run.env_steps, run.updates = env_steps, update
    run.decisions, run.episodes, run.successes = run.tally[-1][1:] if run.tally else (0, 0, 0)


def _plan_in_force(h: History, revision: int) -> None:
    if h.revision and h.revision != revision:
        h.plans[h.revision].status = "superseded"
    h.revision = revision
    h.plans[revision].status = "in_force"
    if h.iteration and h.iteration.verdict is not None:
        h.iteration.reopened = True


def _training_ended(h: History, ended: events.TrainingEnded) -> None:
    h.training_stop_requested = False
    run = h.runs[ended.run]
    run.state, run.reason = ended.state, ended.reason
    h.spent.env_steps += ended.env_steps - run.env_steps
    run.env_steps, run.decisions, run.updates = ended.env_steps, ended.decisions, ended.updates


_TABLES: Mapping[str, Callable[[History, Any], None]] = {
    "session": _session, "event": _event, "task_plan": _task_plan, "iteration": _iteration, "plan": _plan,
    "sub_action": _sub_action, "code_version": _code_version, "trial": _trial, "rl_config": _rl_config,
    "training_run": _training_run, "metric": _metric, "checkpoint": _checkpoint, "evaluation": _evaluation,
    "verdict": _verdict, "llm_call": _llm_call,
}  # fmt: skip
