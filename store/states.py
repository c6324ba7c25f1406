"""The state of a session as plain dataclasses. Only the fold (`history.py`) fills them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rlgpt.store.events import Incumbent, IterationResult, Phase, SkillKept, VersionChosen, Where
from rlgpt.store.measured import EvaluationState, Measured, pool
from rlgpt.store.row_types import (
    AdmissionFields,
    Evidence,
    JsonObject,
    SessionRow,
    SlotFields,
    SubTaskFields,
    TrialEpisodeFields,
)

FRAME_MODULES = {
    "crafter-window-1": "rlgpt.training.worlds.crafter.drawing",
    "kitchen-lines-1": "rlgpt.training.worlds.kitchen.frame",
}
"""Frame format -> module that draws it, for sessions made before they recorded the module themselves."""
BROKEN_OFF = "truncated"
"""End of a trial that the world broke off, which says nothing about the code."""
NO_SESSION = cast(SessionRow, {})


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
    trigger: str = ""
    """Of a guard: while this predicate holds it runs before the steps of the sequence. Of an option: where it is tried.
    Empty: a step."""

    @property
    def is_option(self) -> bool:
        """The plan never runs its code: only a policy does, when it has learnt to."""
        return self.mode == "option"


@dataclass(frozen=True)
class TaskPlanState:
    revision: int
    author: str
    sub_tasks: Sequence[SubTaskFields]
    reason: str
    seq: int


@dataclass
class PlanState:
    sub_task: int
    iteration: int
    revision: int
    author: str
    executor: str
    rationale: str
    depth: int
    attempted: Mapping[str, JsonObject]
    seq: int
    items: list[Item] = field(default_factory=list)
    status: str = "proposed"
    """proposed | waiting | in_force | superseded | rejected."""
    rejection: str = ""
    chosen: dict[str, VersionChosen] = field(default_factory=dict)
    """Sub-action -> which of its versions is in use. Final once the iteration is closed."""

    def item(self, name: str) -> Item | None:
        return next((item for item in self.items if item.name == name), None)

    @property
    def steps(self) -> list[Item]:
        """Without guards and options."""
        return [item for item in self.items if not item.trigger]

    def steps_before(self, item: Item) -> list[Item]:
        """The steps that are done when it begins; all of them for a guard or an option, which may begin at any time."""
        return self.steps if item.trigger else self.steps[: self.steps.index(item)]

    def acts(self, name: str) -> int | None:
        """The version of a sub-action that acts, None if no code of it does."""
        chosen = self.chosen.get(name)
        return chosen.version if chosen else None


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
    evidence: Evidence = field(default_factory=Evidence)
    number: int = 0
    """From 1 over the session: the owner of its frames."""
    trials: Sequence[TrialEpisodeFields] = ()
    """Each start state that was tried."""

    @property
    def share(self) -> float:
        return self.successes / self.episodes if self.episodes else 0.0

    @property
    def failed_by(self) -> dict[str, int]:
        """How the trials ended in which it was needed and failed (`time`: `max_steps` ran out), most frequent first."""
        needed = [t for t in self.trials if t["arrived"] and not t["start_true"] and t["end"] != BROKEN_OFF]
        return dict(Counter(t["end"] for t in needed if not t["end_true"]).most_common())


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
SLOT = "a free training slot"
"""What a session waits for that has no worker yet, because others of this machine train."""
SIGNALLED = "stopped by a signal"
"""Why a session ended that nobody stopped by a command, as all do when a machine is shut down."""


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
    admission: AdmissionFields
    seq: int
    trial: TrialState | None = None
    done_when: str = ""
    """The predicate the last trial measured."""
    verdict: VerdictState | None = None
    """On the last trial."""
    trials: list[tuple[str, TrialState]] = field(default_factory=list)
    """(done_when, trial) of every trial, in order: a re-worded predicate has the same code tried again."""

    def last_trial(self, done_when: str) -> TrialState | None:
        """The last trial for this predicate."""
        return next((trial for measured, trial in reversed(self.trials) if measured == done_when), None)

    def accepting_trial(self, done_when: str) -> TrialState | None:
        """The last trial that accepted it for this predicate."""
        accepted = (t for measured, t in reversed(self.trials) if measured == done_when and t.outcome == "accepted")
        return next(accepted, None)


@dataclass
class ConfigState:
    revision: int
    author: str
    config: JsonObject
    config_hash: str
    note: str
    seq: int


@dataclass(frozen=True)
class CheckpointState:
    update: int
    env_steps: int
    artifact: str
    kind: str
    seq: int
    size: int


@dataclass
class Run:
    run: int
    iteration: int
    revision: int
    config_hash: str
    env_steps_planned: int
    warm_from: int | None
    slots: Sequence[SlotFields]
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
    checkpoints: list[CheckpointState] = field(default_factory=list)
    """In order, without those that a resume went back behind."""
    hidden: list[tuple[int, int]] = field(default_factory=list)
    """Seq ranges (after, before) of metric rows that a resume superseded."""
    tally: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(update, decisions, episodes, successes) so far, to step back on a resume."""

    @property
    def checkpoint(self) -> CheckpointState | None:
        """The last one."""
        return self.checkpoints[-1] if self.checkpoints else None


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
    result: IterationResult | None = None

    @property
    def closed(self) -> bool:
        """It has a verdict, and no plan was put in force behind it."""
        return self.verdict is not None and not self.reopened


@dataclass
class CommandState:
    id: str
    kind: str
    payload: JsonObject
    author: str
    revision: int | None
    state: str
    reason: str
    seq: int


@dataclass
class AdviceState:
    agent: str
    text: str
    author: str
    seq: int


@dataclass
class Spent:
    env_steps: int = 0
    """Trials, prefixes, probes and training; evaluation is free."""
    tokens: int = 0
    cost: float = 0.0
    unknown_price: bool = False
    calls: int = 0


@dataclass
class History:
    session: SessionRow = field(default_factory=NO_SESSION.copy)
    """Its row; empty before it was read."""
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
    phase: Phase = field(default_factory=Phase)
    """The step in progress; its name is empty before the first."""
    phase_active: float = 0.0
    """Active seconds when it began."""
    phase_env_steps: int = 0
    """Env steps spent when it began."""
    worked: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Step -> (how much of it was done, active seconds it took), in the units of `Phase.ahead`."""
    waiting_for: str = ""
    waiting_since: float = 0.0
    """UTC seconds."""
    task_plans: list[TaskPlanState] = field(default_factory=list)
    iterations: list[IterationState] = field(default_factory=list)
    incumbents: dict[int, Incumbent] = field(default_factory=dict)
    """Sub-task -> its best iteration so far."""
    plans: dict[int, PlanState] = field(default_factory=dict)
    revision: int = 0
    """Of the plan in force, 0 before the first."""
    attempts: list[Attempt] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)
    commands: dict[str, CommandState] = field(default_factory=dict)
    advice: list[AdviceState] = field(default_factory=list)
    budgets: dict[str, float | None] = field(default_factory=dict)
    """Changed budgets: name -> value."""
    spent: Spent = field(default_factory=Spent)
    pause_requested: bool = False
    training_stop_requested: bool = False
    stop_requested: str = ""
    """"" | stop | now."""
    where: Where | None = None
    """The machine of the last worker that told."""
    nondeterministic: list[str] = field(default_factory=list)
    host_deaths: dict[str, int] = field(default_factory=dict)
    """source hash -> deaths."""
    probes: dict[str, int] = field(default_factory=dict)
    """Step -> tools that its model called."""
    probe_steps: list[tuple[int, int]] = field(default_factory=list)
    """(seq, env steps) of each such call."""
    skills_kept: list[SkillKept] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Rows per table."""

    def copy(self) -> History:
        """A state that can be folded on while this one stays: all that `fold` changes in place is new."""
        copied: History = _copy(self)
        return copied

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
    def edited_plan(self) -> PlanState | None:
        """The plan in force, or a newer one that the operator rejected: pins that were set in that one hold too."""
        last = self.plans[max(self.plans)] if self.plans else None
        return last if last and last.status == "rejected" else self.plan

    @property
    def iteration(self) -> IterationState | None:
        return self.iterations[-1] if self.iterations else None

    def attempts_of(self, name: str) -> list[Attempt]:
        return [a for a in self.attempts if a.sub_action == name]

    def attempt(self, name: str, version: int | None) -> Attempt | None:
        return next((a for a in self.attempts if (a.sub_action, a.version) == (name, version)), None)

    def acting(self, plan: PlanState, item: Item) -> Attempt | None:
        """The version of an item that acts under a plan, accepted or not, as the worker decided."""
        return self.attempt(item.name, plan.acts(item.name))

    def accepted(self, plan: PlanState, item: Item) -> Attempt | None:
        """The same, if its trials accepted it."""
        chosen = plan.chosen.get(item.name)
        return self.acting(plan, item) if chosen and chosen.accepted else None

    @property
    def scored(self) -> tuple[str, ...]:
        """The milestones that a score counts; empty where a task is won or lost."""
        info = self.session.get("task_info", {})
        return tuple(info["milestones"]) if info.get("kind") == "score" else ()

    @property
    def frame_module(self) -> str:
        """Import path of the module that draws the session's frames, "" where their format needs none."""
        info = self.session.get("task_info", {})
        usual = FRAME_MODULES.get(str(info.get("frame_format", "")), "")
        return str(info.get("frame_module", usual))

    def pooled(self, iteration: IterationState, split: str, variant: str) -> Measured:
        """All episodes of the revision evaluated last."""
        return pool(self.parts(iteration, split, variant))

    def parts(self, iteration: IterationState, split: str, variant: str) -> list[EvaluationState]:
        """The evaluations of the revision evaluated last, in the order of their episodes. None where that was not
        played so, though an earlier one was."""
        played = [e for e in iteration.evaluations if e.split == split]
        return [
            e for e in played
            if e.variant == variant and (e.revision, e.run) == (played[-1].revision, played[-1].run)
        ]  # fmt: skip

    def developed(self, iteration: IterationState) -> Measured:
        """Its dev episodes, of what acts of it."""
        return self.pooled(iteration, "dev", iteration.result.variant if iteration.result else "full")

    @property
    def incumbent(self) -> IterationState | None:
        """The best iteration of the current sub-task so far, as the worker decided."""
        return self.incumbent_of(self.sub_task)

    @property
    def outcome(self) -> IterationState | None:
        """What the session is tested by: the incumbent, and until this sub-task has one, that of one before."""
        found = (self.incumbent_of(number) for number in range(self.sub_task, -1, -1))
        return next((iteration for iteration in found if iteration), None)

    def incumbent_of(self, sub_task: int) -> IterationState | None:
        best = self.incumbents.get(sub_task)
        return next((i for i in self.iterations if best and (i.sub_task, i.number) == (sub_task, best.iteration)), None)

    def part(self, sub_task: int) -> str:
        """The task of a sub-task, which its development episodes are of; "" where it is the session's own, which the
        test is of."""
        ordered = self.task_plans[-1].sub_tasks if self.task_plans else []
        task = str(ordered[sub_task].get("task", "")) if sub_task < len(ordered) else ""
        return task if task != self.session.get("task") else ""

    @property
    def sub_task(self) -> int:
        return self.iterations[-1].sub_task if self.iterations else 0


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
_REPLACED = frozenset(
    {
        CheckpointState, CommandState, EvaluationState, TaskPlanState, VerdictState, ConfigState, TrialState, Item,
        VersionChosen, IterationResult, Incumbent, Phase, SkillKept, AdviceState,
    }
)  # fmt: skip
"""States that the fold puts in place of one another and never changes: copies share them."""
_SHARED = frozenset({int, str, tuple, dict}) | _REPLACED
