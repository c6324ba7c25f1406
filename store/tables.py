"""The schema: one class a table. Every content table is insert-only (a trigger refuses the rest).

A row's place in the session is `seq`, given by the worker's writer in the transaction that writes it; all
tables share one sequence. `at` is UTC seconds for people, `active` seconds of work for budgets and replay.
Column docs say what the fold (`history.py`) and the panes rely on. JSON columns hold plain data.

A row's key is its session and `seq`, so that one database can hold several sessions; `schema.py` says what a
session's own file makes of that. A column that came with a later revision says so:
`Field(default=None, sa_column_kwargs={"info": {"since": "0002"}})`, or `later_json("0003")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint
from sqlalchemy.orm import declared_attr
from sqlmodel import Field, SQLModel

from rlgpt.store.row_types import Counts, Ends, JsonObject, Sums


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class Row(SQLModel):
    """What every row of the worker carries; the writer fills all of it."""

    @declared_attr.directive
    def __tablename__(cls) -> str:
        return _snake(cls.__name__)

    @declared_attr.directive
    def __table_args__(cls) -> tuple[PrimaryKeyConstraint]:
        return (PrimaryKeyConstraint("session_id", "seq"),)

    seq: int = Field(default=0, primary_key=True, sa_column_kwargs={"autoincrement": False})
    session_id: str = Field(default="", primary_key=True)
    incarnation: int = 0
    at: float = 0.0
    active: float = 0.0


def json_column() -> Any:
    return Field(default_factory=dict, sa_column=Column(JSON, nullable=False))


def json_list() -> Any:
    return Field(default_factory=list, sa_column=Column(JSON, nullable=False))


def later_json(revision: str) -> Any:
    """A column of plain data that came with a later revision: NULL in older rows."""
    return Column(JSON(none_as_null=True), nullable=True, info={"since": revision})


class Session(Row, table=True):
    """Fixed at creation, never re-decided. Always seq 1."""

    name: str
    task: str
    world: str
    world_version: str
    settings: JsonObject = json_column()
    """The whole settings tree, without secrets."""
    versions: JsonObject = json_column()
    """Library versions, world hash, machine, device and its explanation, host mode and what was enforced."""
    task_info: JsonObject = json_column()
    """prompt, horizon, milestones, kind, long_horizon, sub_tasks, primitives, targets, frame_format, frame_module."""
    parent_id: str | None = None
    parent_seq: int | None = None


class Event(Row, table=True):
    """Every change of state; kinds and payloads are in events.py."""

    kind: str
    payload: JsonObject = json_column()


class Text(SQLModel, table=True):
    """Long texts once, by hash (blake2b-16 hex of the utf-8), zstd-compressed. Not in the sequence."""

    hash: str = Field(primary_key=True)
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class TaskPlan(Row, table=True):
    revision: int
    author: str
    sub_tasks: Sequence[JsonObject] = json_list()
    """[{task, goal, reason}] in order."""
    reason: str = ""


class Iteration(Row, table=True):
    """Opens an iteration; it is closed by its verdict (verdict row with sub_action NULL)."""

    sub_task: int
    number: int


class Plan(Row, table=True):
    """A revision; its sub_action rows follow in the same transaction, then event plan_in_force or waiting."""

    sub_task: int
    iteration: int
    revision: int
    """Counts over the whole session."""
    author: str
    """slow | refine | operator."""
    executor: str
    """sequence | policy."""
    rationale: str = ""
    depth: int = 0
    """How many refinements inside this iteration led here."""
    attempted: Mapping[str, JsonObject] = json_column()
    """What the model asked for where the loop enforced a pin or a rule: {item: {field: value}}."""


class SubAction(Row, table=True):
    revision: int
    position: int
    name: str
    mode: str
    """code | rl | option."""
    goal: str
    reason: str
    done_when: str
    max_steps: int
    """Env steps a trial may spend on it."""
    pinned: bool = False
    author: str = ""
    """Who last changed this item: as a plan's author, or `loop`, which enforced a rule or an experiment's arm."""
    trigger: str | None = Field(default=None, sa_column_kwargs={"info": {"since": "0003"}})
    """Of a guard: the predicate that makes it run before the sequence; of an option: where it is tried. Empty or NULL:
    a step of the sequence."""


class CodeVersion(Row, table=True):
    sub_task: int
    iteration: int
    sub_action: str
    version: int
    """Per sub-action name, from 1, over the whole session."""
    attempt: int
    """Within the iteration, from 1; 0 for an operator's edit."""
    author: str
    """fast | operator."""
    source_hash: str
    """Text hash of the source."""
    note: str = ""
    admitted: bool = False
    admission: JsonObject = json_column()
    """name, rule, line, message, arguments, has_available, ignore_alarm, tree_hash; `done_when` likewise
    nested under `done_when`."""


class Trial(Row, table=True):
    sub_task: int
    iteration: int
    revision: int
    """Plan revision whose prefix it was tried behind."""
    sub_action: str
    version: int
    source_hash: str
    done_when: str
    outcome: str
    """accepted | failed | unreached | refused (not admitted) | vacuous."""
    episodes: int
    """Trials whose prefix arrived."""
    successes: int
    prefixes: int
    """Trials started, arrived or not."""
    env_steps: int
    error: str = ""
    trials: Sequence[JsonObject] = json_list()
    """[{seed, arrived, start_true, end_true, env_steps, end, message}]."""
    evidence: JsonObject = json_column()
    """{good: {...}|null, bad: {...}|null}, each {before, after, difference, yields, end, message}: what the critic
    sees. Since 0003 also {lost: [...]}: how some failed trials went, see `failures.py`."""


class RlConfig(Row, table=True):
    sub_task: int
    iteration: int
    revision: int
    author: str
    config: JsonObject = json_column()
    config_hash: str = ""
    note: str = ""


class TrainingRun(Row, table=True):
    sub_task: int
    iteration: int
    revision: int
    run: int
    """From 1 over the session."""
    config_hash: str
    env_steps_planned: int
    warm_from: int | None = None
    """Run whose final checkpoint it started from."""
    slots: Sequence[JsonObject] = json_list()
    """[{slot, name, source_hash, arguments, prior, similar}] of the coded actions in the action space."""
    device: str = "cpu"
    explanation: str = ""


class Metric(Row, table=True):
    """One wide row per PPO update."""

    run: int
    update: int
    env_steps: int
    decisions: int
    episodes: int
    """Finished since the previous row."""
    successes: int
    return_mean: float | None = None
    length_mean: float | None = None
    kl: float | None = None
    clip_fraction: float | None = None
    entropy: float | None = None
    """Normalised by log(number of valid joint actions)."""
    policy_loss: float | None = None
    value_loss: float | None = None
    explained_variance: float | None = None
    rate: float | None = None
    """Env steps per second of wall time."""
    learning_rate: float | None = None
    dead_loops: int = 0
    milestones: Counts = json_column()
    """Episodes that reached each milestone since the previous row."""
    option_usage: Counts = json_column()
    """Decisions per slot name; primitives together under `primitive`."""
    end_reasons: Ends = json_column()
    """slot name -> {why: count}; see `end` of `training.options.lane.Lane`."""
    rewards: Sums = json_column()
    """Sum per reward term since the previous row."""
    score: float | None = Field(default=None, sa_column_kwargs={"info": {"since": "0002"}})
    """The task's score, in [0, 1], over all training episodes of the session so far, where its result is a score."""
    option_steps: Counts | None = Field(default=None, sa_column=later_json("0004"))
    """Env steps per slot name, as `option_usage`; NULL where it was not recorded."""


class Episode(Row, table=True):
    """One episode of an evaluation, or of a training where it was filmed (the others are sums in metric). Those of
    trials stand in the trial's row."""

    split: str
    """train | dev | test."""
    owner: int
    """Number of the evaluation, or PPO run."""
    variant: str
    """As the evaluation's; "" in training."""
    index: int
    seed: int
    success: bool
    return_: float = Field(sa_column_kwargs={"name": "return"})
    env_steps: int
    decisions: int
    dead_loop: bool
    end: str
    """success | time | death | truncated."""
    milestones: Sequence[str] = json_list()
    actions: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    """zstd of the int16 commands, kept for test episodes."""
    cause: str | None = Field(default=None, sa_column_kwargs={"info": {"since": "0003"}})
    """What killed the agent, in the world's word (`zombie`, `lava`, `thirst`); "" where it lived or the world does not
    know, NULL in sessions that did not record it."""
    vitals: Sums | None = Field(default=None, sa_column=later_json("0003"))
    """What it lived by at the end, where the world tells: {"health": 0.0, "food": 4.0 ...}."""
    reached: Sequence[str] | None = Field(default=None, sa_column=later_json("0004"))
    """Sub-actions whose done_when was ever true, in the order of the plan; NULL where it was not recorded."""
    last: str | None = Field(default=None, sa_column_kwargs={"info": {"since": "0004"}})
    """The sub-action whose code ran last, "" if none did."""


class Evaluation(Row, table=True):
    sub_task: int
    iteration: int
    revision: int
    number: int
    """From 1 over the session."""
    split: str
    """dev | test."""
    variant: str
    """full | greedy | sampled | options_off | primitives_off | plan (follow_plan alone) | random | prior | script. In
    the test, full is what acts (`events.IterationResult.variant`)."""
    first: int
    """Index of its first episode in the split's range."""
    episodes: int
    successes: int
    """Episodes that succeeded, as measured; in a task whose result is a score, look at `score`."""
    ci_low: float
    ci_high: float
    """Wilson, 95%, of the share that succeeded."""
    return_mean: float
    length_mean: float
    dead_loops: int
    env_steps: int
    run: int | None
    """Training run of the policy; NULL for follow_plan alone."""
    policy: str
    """plan | ppo."""
    funnel: Counts = json_column()
    """sub-action name -> episodes in which its done_when was ever true."""
    milestones: Counts = json_column()
    option_usage: Counts = json_column()
    end_reasons: Ends = json_column()
    rewards: Sums = json_column()
    score: float | None = Field(default=None, sa_column_kwargs={"info": {"since": "0002"}})
    """The task's score, in [0, 1], where its result is a score, with its 95% interval (Wilson's)."""
    score_low: float | None = Field(default=None, sa_column_kwargs={"info": {"since": "0002"}})
    score_high: float | None = Field(default=None, sa_column_kwargs={"info": {"since": "0002"}})
    option_steps: Counts | None = Field(default=None, sa_column=later_json("0003"))
    """Env steps per slot name; primitives together under `primitive`."""
    option_done: Counts | None = Field(default=None, sa_column=later_json("0003"))
    """Slot name -> calls after which the done_when of its sub-action held."""
    failures: JsonObject | None = Field(default=None, sa_column=later_json("0003"))
    """How its episodes ended, and how some of the lost ones went: see `failures.py`. NULL where it was not recorded."""


class Verdict(Row, table=True):
    sub_task: int
    iteration: int
    revision: int
    sub_action: str | None
    """NULL: the iteration's verdict, which closes it."""
    version: int | None
    author: str
    """critic | operator."""
    success: bool
    confidence: float
    cause: str
    advice_slow: str = ""
    advice_fast: str = ""
    measured: bool | None = None
    """What measurement says of the same question; agreement = (success == measured)."""
    better: str = ""
    """Iteration verdicts: which is better by measurement: code | policy | undecided | only one."""


class LlmCall(Row, table=True):
    """Two rows a call: state `sent` before, `answered` or `failed` after; same `call`."""

    call: str
    step: str
    """Key of the step it belongs to; a resumed step finds its recorded replies by (step, request_hash)."""
    role: str
    model: str
    state: str
    request_hash: str
    """Text hash of the canonical request JSON (no key)."""
    reply_hash: str | None = None
    error: str = ""
    try_number: int = 1
    reserved: float | None = None
    """USD reserved; NULL when the price is unknown."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    """USD; NULL = unknown."""
    seconds: float = 0.0


class Frame(Row, table=True):
    """The film of an episode for the world pane (`films.py`): `body` holds its frames, what else is told is of the last
    one. Rows whose format is that of a frame hold that frame alone: until films were packed each frame had a row."""

    source: str
    """trial | train | dev | test."""
    owner: int
    """Number of the evaluation, of the trial (from 1 over the session), or of the PPO run."""
    episode: int
    """`Episode.index`; of a trial its seed."""
    step: int
    format: str
    decision: str = ""
    """Name of the option that ran, or of the primitive that was chosen."""
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    primitive: str | None = Field(default=None, sa_column_kwargs={"info": {"since": "0004"}})
    """What was done in the world's last env step; "" at the beginning, NULL where it was not recorded."""
    inner: str | None = Field(default=None, sa_column_kwargs={"info": {"since": "0004"}})
    """The sub-action whose code ran, where the option runs one of several."""
    return_: float | None = Field(default=None, sa_column_kwargs={"name": "return", "info": {"since": "0004"}})
    """Undiscounted reward of the episode so far."""


class Checkpoint(Row, table=True):
    run: int
    update: int
    env_steps: int
    kind: str
    """rollout (only the last few are kept on disk) | boundary (kept)."""
    artifact: str
    """Hash of the file in artifacts/."""
    size: int


class Log(Row, table=True):
    level: str
    event: str
    fields: JsonObject = json_column()


class Command(SQLModel, table=True):
    """The inbox: written by consoles, taken by the worker, whose events tell their fate; by `rowid`."""

    id: str = Field(primary_key=True)
    """UUID hex."""
    session_id: str
    at: float
    author: str
    """user@host of the console or command line."""
    kind: str
    payload: JsonObject = json_column()
    revision: int | None = None
    """The plan revision its author saw; a stale one is refused."""


CONTENT: tuple[type[SQLModel], ...] = (
    Session, Event, TaskPlan, Iteration, Plan, SubAction, CodeVersion, Trial, RlConfig, TrainingRun, Metric,
    Episode, Evaluation, Verdict, LlmCall, Frame, Checkpoint, Log,
)  # fmt: skip
"""Tables in the shared sequence, in the order in which equal-seq rows could never occur."""

for _table in SQLModel.metadata.tables.values():
    for _column in _table.columns:
        if isinstance(_column.type, Integer):  # 64 bits, as `rows.py` promises; PostgreSQL's INTEGER has 32
            _column.type = BigInteger().with_variant(Integer(), "sqlite")

INDEXES = (
    Index("ix_metric_run", Metric.run, Metric.update),  # type: ignore[arg-type]
    Index("ix_frame_owner", Frame.source, Frame.owner, Frame.episode, Frame.step),  # type: ignore[arg-type]
    Index("ix_llm_call", LlmCall.step, LlmCall.request_hash),
)
