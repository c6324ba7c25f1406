"""What a session has come to: plain dataclasses, filled by the fold (`history.py`) and by nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
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

    @property
    def share(self) -> float:
        return self.successes / self.episodes if self.episodes else 0.0


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


MODEL = "the model"
"""What a session waits for while the server of a language model is away: `History.waiting_for`."""
SOMETIMES = 0.2
"""Share of successful trials from which code is worth calling, though it is not accepted."""
CLEARLY = 0.15
"""Difference of two measured shares that says something: the standard error of 7 in 10 trials."""


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
    """The predicate the last trial measured."""
    verdict: VerdictState | None = None
    """On the last trial."""
    trials: list[tuple[str, TrialState]] = field(default_factory=list)
    """(done_when, trial) of every trial, in order: a re-worded predicate has the same code tried again."""

    def measured(self, done_when: str, until: int | None = None) -> TrialState | None:
        """The last trial for this predicate, as of seq `until`."""
        mine = (t for of, t in reversed(self.trials) if of == done_when and (until is None or t.seq <= until))
        return next(mine, None)

    def accepted(self, done_when: str, until: int | None = None) -> TrialState | None:
        """The trial that accepted it for this predicate, as of seq `until`."""
        for measured, trial in reversed(self.trials):
            if measured == done_when and trial.outcome == "accepted" and (until is None or trial.seq <= until):
                return trial
        return None


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
    """running | finished | superseded | stopped | failed."""
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
    successes: float
    """Episodes won. Where a task's result is a score, `episodes` times that score, in [0, 1]."""
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

    @property
    def tested(self) -> list[EvaluationState]:
        """Its test evaluations, of what acts."""
        return [e for e in self.evaluations if e.split == "test" and e.variant == "full"]

    def evaluation(self, split: str, variant: str, revision: int) -> EvaluationState | None:
        """All episodes of one split and variant at one revision, pooled by the reader of `parts`."""
        parts = [e for e in self.evaluations if (e.split, e.variant, e.revision) == (split, variant, revision)]
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
    training_stop_requested: bool = False
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
        return [a for a in self.attempts if a.sub_action == name and (iteration is None or a.iteration == iteration)]

    def accepted(self, item: Item, until: int | None = None) -> Attempt | None:
        """The version in use: of those accepted by measurement for this item's predicate, as of seq `until`, the
        operator's newest, else the newest that was not measured clearly below an earlier one, in its trials or at its
        work in the plan (`in_use`)."""
        return self._accepted(item, until, self._of_several(item, until))

    def _of_several(self, item: Item, until: int | None) -> dict[int, tuple[int, int]]:
        """`in_use`, where there is more than one version to choose from."""
        several = sum(attempt.sub_action == item.name for attempt in self.attempts) > 1
        return self.in_use(item, until) if several else {}

    def _accepted(self, item: Item, until: int | None, used: Mapping[int, tuple[int, int]]) -> Attempt | None:
        best: Attempt | None = None
        bar = 0.0
        for attempt in self.attempts:
            trial = attempt.accepted(item.done_when, until) if attempt.sub_action == item.name else None
            by_operator = attempt.author == "operator"
            if trial and (by_operator or (not (best and best.author == "operator") and trial.share >= bar)):
                if best is None or by_operator or not _worse(used.get(attempt.version), used.get(best.version)):
                    best = attempt
                bar = max(bar, trial.share - CLEARLY)
        return best

    @property
    def scored(self) -> tuple[str, ...]:
        """The milestones that a score counts; empty where a task is won or lost."""
        info = self.session.get("task_info", {})
        return tuple(info["milestones"]) if info.get("kind") == "score" else ()

    def usable(self, item: Item, until: int | None = None) -> Attempt | None:
        """The version that may act: the accepted one, else the best that at least sometimes did its work. What was
        left to RL keeps such code as a step of follow_plan and as one of the policy's actions, unless the operator
        left it to RL."""
        return self._usable(item, until, self._of_several(item, until))

    def _usable(self, item: Item, until: int | None, used: Mapping[int, tuple[int, int]]) -> Attempt | None:
        accepted = self._accepted(item, until, used)
        if item.mode == "rl" and (accepted or item.author == "operator" or item.pinned):
            return None
        best, bar = accepted, SOMETIMES
        if best is None:
            for attempt in self.attempts:
                trial = attempt.measured(item.done_when, until) if attempt.sub_action == item.name else None
                if trial and trial.outcome == "failed" and trial.share >= bar:
                    best, bar = attempt, trial.share
        return best

    def in_use(self, item: Item, until: int | None = None) -> dict[int, tuple[int, int]]:
        """Version -> (done, came): of the dev episodes in which the code alone acted and the plan came to this
        sub-action, those in which it was done. The last iteration that used the version counts, of those closed before
        seq `until`."""
        found: dict[int, tuple[int, int]] = {}
        for iteration in self.iterations:
            if iteration.sub_task != self.sub_task or iteration.verdict is None or not iteration.plans:
                continue
            closed = iteration.verdict.seq
            if until is not None and closed >= until:
                break
            dev = [e for e in iteration.evaluations if e.split == "dev" and item.name in e.funnel]
            alone = [e for e in dev if e.variant == "plan" or (e.variant, e.policy) == ("full", "plan")]
            used = self._usable(item, closed, found) if alone else None
            if used is None:
                continue
            plan = self.plans[alone[-1].revision]
            alone = [e for e in alone if e.revision == plan.revision]
            names = [each.name for each in plan.items]
            if item.name not in names:
                continue
            came = sum(e.episodes for e in alone)
            for before in reversed(plan.items[: names.index(item.name)]):
                if before.name in alone[-1].funnel and self._usable(before, closed, {}):
                    came = sum(e.funnel[before.name] for e in alone)
                    break
            found[used.version] = (min(sum(e.funnel[item.name] for e in alone), came), came)
        return found

    def pooled(self, iteration: IterationState, split: str, variant: str) -> tuple[float, int]:
        """(successes, episodes) of the revision evaluated last."""
        parts = [e for e in iteration.evaluations if e.split == split and e.variant == variant]
        if not parts:
            return (0, 0)
        same = [e for e in parts if (e.revision, e.run) == (parts[-1].revision, parts[-1].run)]
        return (round(sum(e.successes for e in same), 2), sum(e.episodes for e in same))

    @property
    def incumbent(self) -> IterationState | None:
        """Best iteration of the current sub-task by dev success, ties to the earlier; only closed ones. An iteration is
        as good as what acts of it (`played`). Once tested it stays."""
        return self._incumbent_of(self.sub_task)

    @property
    def forerunner(self) -> IterationState | None:
        """What training starts from and what plays sub-actions left to RL: the incumbent, and until this sub-task has
        one, that of the sub-task before, which is the same task up to an earlier milestone."""
        return self.incumbent or self._incumbent_of(self.sub_task - 1)

    def _incumbent_of(self, sub_task: int) -> IterationState | None:
        tested = [i for i in self.iterations if i.sub_task == sub_task and i.tested]
        if tested:
            return tested[-1]
        best: IterationState | None = None
        best_rate = -1.0
        for iteration in self.iterations:
            if iteration.sub_task != sub_task or iteration.verdict is None:
                continue
            rate = self._dev_rate(iteration, self.played(iteration))
            if rate > best_rate:
                best, best_rate = iteration, rate
        return best

    def played(self, iteration: IterationState) -> str:
        """How the iteration's result plays, by the dev variant: full (its policy sampled, or its sequence), greedy (its
        policy's most probable actions) or plan (its code alone). The policy acts where it was better in development
        than the code alone by more than one standard error, so that luck chooses it less often; of a score, by
        anything. Once tested, what was tested."""
        policy = self.sampled_or_greedy(iteration)
        learnt = any(e.policy == "ppo" for e in iteration.evaluations if e.split == "dev" and e.variant == "full")
        if iteration.tested:
            return "plan" if learnt and iteration.tested[-1].policy != "ppo" else policy
        code = self.pooled(iteration, "dev", "plan")
        if not learnt or not code[1]:
            return policy
        if self.scored:
            return policy if self._dev_rate(iteration, policy) > self._dev_rate(iteration, "plan") else "plan"
        return policy if _worse(code, self.pooled(iteration, "dev", policy)) else "plan"

    def sampled_or_greedy(self, iteration: IterationState) -> str:
        """full | greedy: how the iteration's policy did better in development."""
        return "greedy" if self._dev_rate(iteration, "greedy") > self._dev_rate(iteration, "full") else "full"

    def developed(self, iteration: IterationState) -> tuple[float, int]:
        """(successes, episodes) of its dev episodes, of what acts."""
        return self.pooled(iteration, "dev", self.played(iteration))

    def _dev_rate(self, iteration: IterationState, variant: str) -> float:
        successes, episodes = self.pooled(iteration, "dev", variant)
        return successes / episodes if episodes else -1.0

    @property
    def sub_task(self) -> int:
        return self.iterations[-1].sub_task if self.iterations else 0


def _worse(version: tuple[float, int] | None, other: tuple[float, int] | None) -> bool:
    """Of two (done, came): whether the first was done in a smaller share, by more than one standard error."""
    if not version or not other or not version[1] or not other[1]:
        return False
    shares = [done / came for done, came in (version, other)]
    variance = sum(share * (1 - share) / came for share, (_, came) in zip(shares, (version, other), strict=True))
    return shares[1] - shares[0] > sqrt(variance)


def _copy(value: Any) -> Any:
    """Rows and payloads are never changed, so mappings of plain data are shared one level down."""
    kind = type(value)
    if kind in _ATOMS or kind in _REPLACED:
        return value
    if kind is list:
        return [_copy(v) for v in value] if value and type(value[0]) not in _SHARED else value.copy()
    if kind is dict:
        return {k: _copy(v) for k, v in value.items()} if value and _holds_states(value) else value.copy()
    fresh = object.__new__(kind)
    fresh.__dict__.update({k: _copy(v) for k, v in value.__dict__.items()})
    return fresh


def _holds_states(value: dict[Any, Any]) -> bool:
    first = type(next(iter(value.values())))
    return hasattr(first, "__dataclass_fields__") and first not in _REPLACED


_ATOMS = frozenset({int, float, str, bool, type(None), tuple})
_REPLACED = frozenset({CommandState, EvaluationState, VerdictState, ConfigState, TrialState, Item})
"""States that the fold puts in place of one another and never changes: copies share them."""
_SHARED = frozenset({int, str, tuple, dict}) | _REPLACED
