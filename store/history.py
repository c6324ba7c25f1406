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
  command {id, kind, state, reason, author, revision, payload}  state: seen | applied | refused | expired
  incumbent is derived, never an event         nondeterministic {cause}
  forked {parent, seq, changed}                in a fork, behind the last row copied
  skill_kept {name, hash}                      host_death {signal, source_hash, sub_action}
  waiting {for}                                ended {status: succeeded|finished|stopped|failed, reason}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Fields = Mapping[str, Any]


@dataclass
class Item:
    """One sub-action of a plan revision."""

    name: str
    mode: str
    goal: str
    reason: str
    done_when: str
    max_steps: int
    pinned: bool
    author: str

    @property
    def task(self) -> tuple[str, str, str]:
        """What code for it was accepted for: a change here means it must be coded anew."""
        return (self.name, self.goal, self.done_when)


@dataclass
class PlanState:
    sub_task: int
    iteration: int
    revision: int
    author: str
    executor: str
    rationale: str
    depth: int
    attempted: Fields
    seq: int
    items: list[Item] = field(default_factory=list)
    status: str = "proposed"
    """proposed | waiting | in_force | superseded | rejected."""
    rejection: str = ""

    def item(self, name: str) -> Item | None:
        return next((item for item in self.items if item.name == name), None)


@dataclass
class TrialState:
    iteration: int
    revision: int
    outcome: str
    episodes: int
    successes: int
    prefixes: int
    env_steps: int
    error: str
    seq: int
    evidence: Fields = field(default_factory=dict)


@dataclass
class VerdictState:
    author: str
    success: bool
    confidence: float
    cause: str
    advice_slow: str
    advice_fast: str
    measured: bool | None
    better: str
    seq: int


@dataclass
class Attempt:
    """One code version with what became of it."""

    sub_task: int
    iteration: int
    sub_action: str
    version: int
    attempt: int
    author: str
    source_hash: str
    note: str
    admitted: bool
    admission: Fields
    seq: int
    trial: TrialState | None = None
    done_when: str = ""
    """The predicate the trial measured."""
    verdict: VerdictState | None = None


@dataclass
class ConfigState:
    revision: int
    author: str
    config: Fields
    config_hash: str
    note: str
    seq: int


@dataclass
class Run:
    run: int
    iteration: int
    revision: int
    config_hash: str
    env_steps_planned: int
    warm_from: int | None
    slots: list[Any]
    device: str
    explanation: str
    seq: int
    state: str = "running"
    """running | finished | superseded | stopped."""
    reason: str = ""
    env_steps: int = 0
    decisions: int = 0
    updates: int = 0
    episodes: int = 0
    successes: int = 0
    checkpoint: Fields | None = None
    """Last checkpoint row: update, env_steps, artifact, kind, seq."""
    hidden: list[tuple[int, int]] = field(default_factory=list)
    """Seq ranges (after, before) of metric rows that a resume superseded."""
    tally: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(update, decisions, episodes, successes) so far, to step back on a resume."""


@dataclass
class EvaluationState:
    number: int
    iteration: int
    revision: int
    split: str
    variant: str
    first: int
    episodes: int
    successes: int
    ci_low: float
    ci_high: float
    return_mean: float
    length_mean: float
    dead_loops: int
    run: int | None
    policy: str
    funnel: Fields
    milestones: Fields
    option_usage: Fields
    end_reasons: Fields
    rewards: Fields
    seq: int

    @property
    def rate(self) -> float:
        return self.successes / self.episodes if self.episodes else 0.0


@dataclass
class IterationState:
    sub_task: int
    number: int
    seq: int
    plans: list[int] = field(default_factory=list)
    """Revisions, in order."""
    config: ConfigState | None = None
    runs: list[int] = field(default_factory=list)
    evaluations: list[EvaluationState] = field(default_factory=list)
    verdict: VerdictState | None = None
    reopened: bool = False

    def evaluation(self, split: str, variant: str, revision: int) -> EvaluationState | None:
        """All episodes of one split and variant at one revision, pooled by the reader of `parts`."""
        parts = [
            e for e in self.evaluations if (e.split, e.variant, e.revision) == (split, variant, revision)
        ]
        return parts[-1] if parts else None


@dataclass
class CommandState:
    id: str
    kind: str
    payload: Fields
    author: str
    revision: int | None
    state: str
    reason: str
    seq: int


@dataclass
class Spent:
    env_steps: int = 0
    """Trials, prefixes and training; evaluation is free."""
    tokens: int = 0
    cost: float = 0.0
    unknown_price: bool = False
    calls: int = 0


@dataclass
class History:
    session: dict[str, Any] = field(default_factory=dict)
    seq: int = 0
    incarnation: int = 0
    at: float = 0.0
    active: float = 0.0
    started_at: float = 0.0
    status: str = "created"
    """created | running | waiting | paused | ended."""
    result: str = ""
    """When ended: succeeded | finished | stopped | failed."""
    reason: str = ""
    phase: dict[str, Any] = field(default_factory=dict)
    phase_seq: int = 0
    waiting_for: str = ""
    task_plans: list[dict[str, Any]] = field(default_factory=list)
    iterations: list[IterationState] = field(default_factory=list)
    plans: dict[int, PlanState] = field(default_factory=dict)
    revision: int = 0
    """Of the plan in force, 0 before the first."""
    attempts: list[Attempt] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)
    commands: dict[str, CommandState] = field(default_factory=dict)
    advice: list[dict[str, Any]] = field(default_factory=list)
    budgets: dict[str, Any] = field(default_factory=dict)
    """Changed budgets: name -> value."""
    spent: Spent = field(default_factory=Spent)
    pause_requested: bool = False
    stop_requested: str = ""
    """"" | stop | now."""
    nondeterministic: list[str] = field(default_factory=list)
    host_deaths: dict[str, int] = field(default_factory=dict)
    """source hash -> deaths."""
    skills_kept: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Rows per table."""

    def copy(self) -> History:
        """A state that can be folded on while this one stays: all that `fold` changes in place is new."""
        return _copy(self)  # type: ignore[no-any-return]

    # ---- questions everybody asks -------------------------------------------------------------
    @property
    def plan(self) -> PlanState | None:
        return self.plans.get(self.revision)

    @property
    def pending_plan(self) -> PlanState | None:
        """A revision that waits for approval."""
        last = self.plans[max(self.plans)] if self.plans else None
        return last if last and last.status in ("proposed", "waiting") else None

    @property
    def iteration(self) -> IterationState | None:
        return self.iterations[-1] if self.iterations else None

    def attempts_of(self, name: str, iteration: int | None = None) -> list[Attempt]:
        return [
            a
            for a in self.attempts
            if a.sub_action == name and (iteration is None or a.iteration == iteration)
        ]

    def accepted(self, item: Item, until: int | None = None) -> Attempt | None:
        """The newest version accepted by measurement for exactly this item's predicate, as of seq `until`."""
        for attempt in reversed(self.attempts):
            if (
                attempt.sub_action == item.name
                and (until is None or attempt.seq <= until)
                and attempt.trial
                and attempt.trial.outcome == "accepted"
                and attempt.done_when == item.done_when
            ):
                return attempt
        return None

    def pooled(self, iteration: IterationState, split: str, variant: str) -> tuple[int, int]:
        """(successes, episodes) of the revision evaluated last."""
        parts = [e for e in iteration.evaluations if e.split == split and e.variant == variant]
        if not parts:
            return (0, 0)
        same = [e for e in parts if (e.revision, e.run) == (parts[-1].revision, parts[-1].run)]
        return (sum(e.successes for e in same), sum(e.episodes for e in same))

    @property
    def incumbent(self) -> IterationState | None:
        """Best iteration of the current sub-task by dev success, ties to the earlier; only closed ones."""
        best: IterationState | None = None
        best_rate = -1.0
        for iteration in self.iterations:
            if iteration.sub_task != self.sub_task or iteration.verdict is None:
                continue
            successes, episodes = self.pooled(iteration, "dev", "full")
            if episodes and successes / episodes > best_rate:
                best, best_rate = iteration, successes / episodes
        return best

    @property
    def sub_task(self) -> int:
        return self.iterations[-1].sub_task if self.iterations else 0


def _copy(value: Any) -> Any:
    """Rows and payloads are never changed, so mappings of plain data are shared one level down."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is list:
        return [_copy(v) for v in value] if value and type(value[0]) not in _SHARED else value.copy()
    if kind is dict:
        return {k: _copy(v) for k, v in value.items()} if value and _holds_states(value) else value.copy()
    fresh = object.__new__(kind)
    fresh.__dict__.update({k: _copy(v) for k, v in value.__dict__.items()})
    return fresh


def _holds_states(value: dict[Any, Any]) -> bool:
    return hasattr(next(iter(value.values())), "__dataclass_fields__")


_ATOMS = frozenset({int, float, str, bool, type(None), tuple})
_SHARED = frozenset({int, str, tuple, dict})


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
    h.task_plans.append(
        {k: row[k] for k in ("revision", "author", "sub_tasks", "reason")} | {"seq": row["seq"]}
    )


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
        run.checkpoint = {k: row[k] for k in keys}


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


def _training_ended(h: History, p: Fields, seq: int) -> None:
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
    "training_ended": _training_ended, "command": _command, "ended": _ended, "advice": _advice,
    "budget": _budget, "pause_requested": _pause_requested, "resume_requested": _resume_requested,
    "stop_requested": _stop_requested, "nondeterministic": _nondeterministic, "host_death": _host_death,
    "skill_kept": _skill_kept, "forked": _forked,
}  # fmt: skip
