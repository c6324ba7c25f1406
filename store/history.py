"""The session folded: plain dataclasses, and the one function that folds a row into them.

`fold(history, table, row)` is total over rows in `seq` order. The loop asks this state for the next step,
the console draws it, replay is the same fold up to a cursor. Pure: no SQL, no clock, no I/O.

Heavy rows (metric, frame, episode, log, llm_call texts) leave only sums here; panes read them as rows with
seq <= cursor, minus `Run.hidden`.

Event kinds and payloads
  started {}                                   resumed {from_seq, run?, update?, env_steps?, cause}
  phase {name, iteration?, sub_action?, detail?}        what the worker is doing now
  plan_in_force {revision}                     plan_waiting {revision}   review mode
  plan_approved {revision, author}             plan_rejected {revision, author, text}
  training_ended {run, state, reason, env_steps, decisions, updates}   state: finished | superseded | stopped
  advice {agent, text, author}                 budget {name, value, author}
  pause_requested {author}, resume_requested {author}, stop_requested {author, now}
  training_stop_requested {author}
  command {id, kind, state, reason, author, revision, payload, place?}  state: seen | applied | refused | expired;
                                               place {work, clock?}: where in the session (command_replay.py)
  version_chosen, iteration_result, incumbent  what the worker decided, and why (decisions.py)
  nondeterministic {cause}
  forked {parent, seq, changed}                in a fork, behind the last row copied
  skill_kept {name, hash}                      host_death {signal, source_hash, sub_action}
  waiting {for}                                ended {status: succeeded|finished|stopped|failed, reason}
"""

from __future__ import annotations

from collections.abc import Iterable

from rlgpt.store.decisions import Incumbent, IterationResult, VersionChosen
from rlgpt.store.states import (
    Attempt,
    CommandState,
    ConfigState,
    EvaluationState,
    Fields,
    History,
    Item,
    IterationState,
    Measured,
    PlanState,
    Run,
    Spent,
    TrialState,
    VerdictState,
    pool,
)

__all__ = [
    "Attempt",
    "CommandState",
    "ConfigState",
    "EvaluationState",
    "Fields",
    "History",
    "Item",
    "IterationState",
    "Measured",
    "PlanState",
    "Run",
    "Spent",
    "TrialState",
    "VerdictState",
    "fold",
    "fold_all",
    "pool",
]


def fold_all(rows: Iterable[tuple[str, Fields]], history: History | None = None) -> History:
    history = history or History()
    for table, row in rows:
        fold(history, table, row)
    return history


def fold(h: History, table: str, row: Fields) -> None:
    """Fold one row, in place. Unknown tables and event kinds only move the cursor (additive schema)."""
    h.seq = row["seq"]
    h.incarnation = row["incarnation"]
    h.at, h.active = row["at"], row["active"]
    h.counts[table] = h.counts.get(table, 0) + 1
    step = _TABLES.get(table)
    if step:
        step(h, row)


def _session(h: History, row: Fields) -> None:
    h.session = dict(row)
    h.started_at = row["at"]


def _task_plan(h: History, row: Fields) -> None:
    h.task_plans.append({k: row[k] for k in ("revision", "author", "sub_tasks", "reason")} | {"seq": row["seq"]})


def _iteration(h: History, row: Fields) -> None:
    h.iterations.append(IterationState(row["sub_task"], row["number"], row["seq"]))


def _plan(h: History, row: Fields) -> None:
    keys = (
        "sub_task", "iteration", "revision", "author", "executor", "rationale", "depth", "attempted", "seq",
    )  # fmt: skip
    h.plans[row["revision"]] = PlanState(**{k: row[k] for k in keys})
    if h.iteration:
        h.iteration.plans.append(row["revision"])


def _sub_action(h: History, row: Fields) -> None:
    keys = ("name", "mode", "goal", "reason", "done_when", "max_steps", "author")
    h.plans[row["revision"]].items.append(Item(**{k: row[k] for k in keys}, pinned=bool(row["pinned"])))


def _code_version(h: History, row: Fields) -> None:
    keys = (
        "sub_task", "iteration", "sub_action", "version", "attempt", "author", "source_hash", "note",
        "admission", "seq",
    )  # fmt: skip
    h.attempts.append(Attempt(**{k: row[k] for k in keys}, admitted=bool(row["admitted"])))


def _trial(h: History, row: Fields) -> None:
    h.spent.env_steps += row["env_steps"]
    attempt = _attempt(h, row)
    if attempt:
        keys = (
            "iteration", "revision", "outcome", "episodes", "successes", "prefixes", "env_steps", "error",
            "seq", "evidence",
        )  # fmt: skip
        attempt.trial = TrialState(**{k: row[k] for k in keys})
        attempt.done_when = row["done_when"]
        attempt.trials.append((attempt.done_when, attempt.trial))
        attempt.verdict = None


def _attempt(h: History, row: Fields) -> Attempt | None:
    for attempt in reversed(h.attempts):
        if attempt.sub_action == row["sub_action"] and attempt.version == row["version"]:
            return attempt
    return None


def _rl_config(h: History, row: Fields) -> None:
    if h.iteration:
        keys = ("revision", "author", "config", "config_hash", "note", "seq")
        h.iteration.config = ConfigState(**{k: row[k] for k in keys})


def _training_run(h: History, row: Fields) -> None:
    keys = (
        "run", "iteration", "revision", "config_hash", "env_steps_planned", "warm_from", "slots", "device",
        "explanation", "seq",
    )  # fmt: skip
    h.runs[row["run"]] = Run(**{k: row[k] for k in keys})
    if h.iteration:
        h.iteration.runs.append(row["run"])


def _metric(h: History, row: Fields) -> None:
    run = h.runs[row["run"]]
    h.spent.env_steps += row["env_steps"] - run.env_steps
    run.env_steps, run.decisions, run.updates = row["env_steps"], row["decisions"], row["update"]
    run.episodes += row["episodes"]
    run.successes += row["successes"]
    run.tally.append((run.updates, run.decisions, run.episodes, run.successes))


def _checkpoint(h: History, row: Fields) -> None:
    run = h.runs.get(row["run"])
    if run:
        keys = ("update", "env_steps", "artifact", "kind", "seq", "size")
        run.checkpoints.append({k: row[k] for k in keys})


def _evaluation(h: History, row: Fields) -> None:
    keys = list(EvaluationState.__dataclass_fields__)
    if h.iterations:
        owner = next(
            (i for i in h.iterations if (i.sub_task, i.number) == (row["sub_task"], row["iteration"])),
            h.iterations[-1],
        )
        owner.evaluations.append(EvaluationState(**{k: row[k] for k in keys}))


def _verdict(h: History, row: Fields) -> None:
    keys = ("author", "confidence", "cause", "advice_slow", "advice_fast", "better", "seq")
    measured = None if row["measured"] is None else bool(row["measured"])
    verdict = VerdictState(**{k: row[k] for k in keys}, success=bool(row["success"]), measured=measured)
    if row["sub_action"] is None:
        if h.iteration:
            h.iteration.verdict = verdict
            h.iteration.reopened = False
    else:
        attempt = _attempt(h, row)
        if attempt:
            attempt.verdict = verdict


def _llm_call(h: History, row: Fields) -> None:
    if row["state"] == "sent":
        h.spent.calls += 1
        return
    h.spent.tokens += row["tokens_in"] + row["tokens_out"]
    if row["cost"] is None:
        h.spent.unknown_price = h.spent.unknown_price or bool(row["tokens_in"] + row["tokens_out"])
    else:
        h.spent.cost += row["cost"]


# ---- events ------------------------------------------------------------------------------------
def _event(h: History, row: Fields) -> None:
    step = _EVENTS.get(row["kind"])
    if step:
        step(h, row["payload"], row["seq"])


def _started(h: History, p: Fields, seq: int) -> None:
    h.status = "running"


def _resumed(h: History, p: Fields, seq: int) -> None:
    h.status, h.result, h.reason, h.waiting_for = "running", "", "", ""
    h.stop_requested = ""
    if p.get("run") is not None:
        run = h.runs[p["run"]]
        run.hidden.append((p["from_seq"], seq))
        h.spent.env_steps -= run.env_steps - p["env_steps"]
        run.tally = [t for t in run.tally if t[0] <= p["update"]]
        run.checkpoints = [c for c in run.checkpoints if c["seq"] <= p["from_seq"]]
        run.env_steps, run.updates = p["env_steps"], p["update"]
        run.decisions, run.episodes, run.successes = run.tally[-1][1:] if run.tally else (0, 0, 0)


def _phase(h: History, p: Fields, seq: int) -> None:
    h.phase, h.phase_seq = dict(p), seq
    h.status, h.waiting_for = "running", ""


def _waiting(h: History, p: Fields, seq: int) -> None:
    h.waiting_for = p["for"]
    h.status = "paused" if p["for"] == "paused" else "waiting"


def _plan_in_force(h: History, p: Fields, seq: int) -> None:
    if h.revision and h.revision != p["revision"]:
        h.plans[h.revision].status = "superseded"
    h.revision = p["revision"]
    h.plans[h.revision].status = "in_force"
    if h.iteration and h.iteration.verdict is not None:
        h.iteration.reopened = True


def _plan_waiting(h: History, p: Fields, seq: int) -> None:
    for plan in h.plans.values():
        if plan.status == "waiting" and plan.revision != p["revision"]:
            plan.status = "superseded"
    h.plans[p["revision"]].status = "waiting"


def _plan_rejected(h: History, p: Fields, seq: int) -> None:
    plan = h.plans[p["revision"]]
    plan.status, plan.rejection = "rejected", p.get("text", "")


def _training_stop_requested(h: History, p: Fields, seq: int) -> None:
    h.training_stop_requested = True


def _training_ended(h: History, p: Fields, seq: int) -> None:
    h.training_stop_requested = False
    run = h.runs[p["run"]]
    run.state, run.reason = p["state"], p.get("reason", "")
    h.spent.env_steps += p["env_steps"] - run.env_steps
    run.env_steps, run.decisions, run.updates = p["env_steps"], p["decisions"], p["updates"]


def _command(h: History, p: Fields, seq: int) -> None:
    keys = ("id", "kind", "payload", "author", "revision", "state", "reason")
    h.commands[p["id"]] = CommandState(**{k: p.get(k) for k in keys}, seq=seq)  # type: ignore[arg-type]


def _ended(h: History, p: Fields, seq: int) -> None:
    h.status, h.result, h.reason, h.waiting_for = "ended", p["status"], p["reason"], ""


def _advice(h: History, p: Fields, seq: int) -> None:
    h.advice.append(dict(p) | {"seq": seq})


def _budget(h: History, p: Fields, seq: int) -> None:
    h.budgets[p["name"]] = p["value"]


def _pause_requested(h: History, p: Fields, seq: int) -> None:
    h.pause_requested = True


def _resume_requested(h: History, p: Fields, seq: int) -> None:
    h.pause_requested = False


def _stop_requested(h: History, p: Fields, seq: int) -> None:
    h.stop_requested = "now" if p.get("now") else "stop"


def _nondeterministic(h: History, p: Fields, seq: int) -> None:
    h.nondeterministic.append(p["cause"])


def _host_death(h: History, p: Fields, seq: int) -> None:
    h.host_deaths[p["source_hash"]] = h.host_deaths.get(p["source_hash"], 0) + 1


def _forked(h: History, p: Fields, seq: int) -> None:
    h.status, h.result, h.reason, h.waiting_for = "created", "", "", ""
    h.stop_requested, h.pause_requested = "", False


def _version_chosen(h: History, p: Fields, seq: int) -> None:
    h.plans[p["revision"]].chosen[p["item"]] = VersionChosen(**p)


def _iteration_result(h: History, p: Fields, seq: int) -> None:
    for iteration in h.iterations:
        if (iteration.sub_task, iteration.number) == (p["sub_task"], p["iteration"]):
            iteration.result = IterationResult(**p)


def _incumbent(h: History, p: Fields, seq: int) -> None:
    h.incumbents[p["sub_task"]] = Incumbent(**p)


def _skill_kept(h: History, p: Fields, seq: int) -> None:
    h.skills_kept.append(dict(p))


_TABLES = {
    "session": _session, "event": _event, "task_plan": _task_plan, "iteration": _iteration, "plan": _plan,
    "sub_action": _sub_action, "code_version": _code_version, "trial": _trial, "rl_config": _rl_config,
    "training_run": _training_run, "metric": _metric, "checkpoint": _checkpoint, "evaluation": _evaluation,
    "verdict": _verdict, "llm_call": _llm_call,
}  # fmt: skip
_EVENTS = {
    "started": _started, "resumed": _resumed, "phase": _phase, "waiting": _waiting,
    "plan_in_force": _plan_in_force, "plan_waiting": _plan_waiting, "plan_rejected": _plan_rejected,
    "training_ended": _training_ended, "training_stop_requested": _training_stop_requested,
    "command": _command, "ended": _ended, "advice": _advice,
    "budget": _budget, "pause_requested": _pause_requested, "resume_requested": _resume_requested,
    "stop_requested": _stop_requested, "nondeterministic": _nondeterministic, "host_death": _host_death,
    "skill_kept": _skill_kept, "forked": _forked, "version_chosen": _version_chosen,
    "iteration_result": _iteration_result, "incumbent": _incumbent,
}  # fmt: skip
