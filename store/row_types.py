"""What a row of each table holds when it is read: plain dictionaries, typed. Standard library only.

`tables.py` says what the columns mean and makes the tables; `tests/store/test_row_types.py` holds both to the same
columns and types. A row that was read with a choice of columns has only those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, get_args, get_type_hints

JsonObject = Mapping[str, Any]
"""A JSON document that a column keeps as it is. Whoever knows its shape parses it: settings `store/settings.py`, a
training configuration `agents/contracts.py`, the payload of an event `store/events.py`, that of a command
`store/commands.py`. Nobody outside reads single keys of it but to show them."""


# ---- which values there are -------------------------------------------------------------------------
class Range(NamedTuple):
    """Which numbers a value of a row may be; of a text the number of its letters. Bundles of anybody are held to it."""

    least: float
    most: float


Count = Annotated[int, Range(0, 10**15)]
Number = Annotated[int, Range(1, 10**15)]
Amount = Annotated[float, Range(0, 10**15)]
"""Seconds, USD, env steps: what can be added up without end."""
Share = Annotated[float, Range(0, 1 + 1e-9)]
"""Sessions were written with a score that is rounded to a little more than 1."""
Name = Annotated[str, Range(0, 200)]
"""What a list has a column for."""


# ---- what JSON columns hold --------------------------------------------------------------------------
class TaskInfo(TypedDict, total=False):
    """Of the task, as its world described it when the session was created; older sessions have fewer keys."""

    id: str
    prompt: str
    horizon: int
    milestones: Sequence[str]
    kind: str
    long_horizon: bool
    sub_tasks: Sequence[str]
    primitives: Sequence[str]
    targets: Sequence[str]
    frame_format: str
    frame_module: str


class ListedSettings(TypedDict, total=False):
    """What lists of sessions look at of their settings; `settings.py` knows the whole tree."""

    seed: int
    llm: JsonObject
    budget: JsonObject
    loop: JsonObject
    method: JsonObject


class SubTaskFields(TypedDict):
    task: str
    goal: str
    reason: str


class AdmissionFields(TypedDict, total=False):
    """What the check of a source said (`training/steps/admission.py`)."""

    name: str
    rule: str
    line: int
    message: str
    arguments: Mapping[str, Sequence[Any]]
    """Values of each Literal argument."""
    has_available: bool
    ignore_alarm: bool
    tree_hash: str
    draft: int
    """Of its attempt, from 1; only where an attempt has several."""


def tell_refusal(rule: str, line: int, message: str) -> str:
    """Why a source was not admitted, in one sentence. Line 0 means the source as a whole."""
    return f"rule {rule}, line {line}: {message}" if line > 0 else f"rule {rule}: {message}"


class Example(TypedDict):
    """One trial, as agents and people see it."""

    before: JsonObject
    after: JsonObject
    difference: JsonObject
    yields: Sequence[str]
    end: str
    message: str


class Evidence(TypedDict, total=False):
    """A trial that succeeded and one that did not; empty where no code ran. `lost`: as `failures.py` tells."""

    good: Example | None
    bad: Example | None
    lost: Sequence[JsonObject]


class TrialEpisodeFields(TypedDict):
    """One start state that was tried."""

    seed: int
    arrived: bool
    start_true: bool
    end_true: bool
    env_steps: Count
    end: str
    message: str


class SlotFields(TypedDict):
    """A coded action in the action space of a training run."""

    slot: int
    name: str
    source_hash: str
    arguments: Mapping[str, Any]
    prior: float | None
    similar: NotRequired[str]


Counts = Mapping[str, Count]
Ends = Mapping[str, Counts]
"""Slot name -> end reason -> count."""
Sums = Mapping[str, float]


# ---- the tables --------------------------------------------------------------------------------------
class Row(TypedDict):
    seq: int
    session_id: str
    incarnation: Count
    at: float
    active: Amount


class SessionRow(Row):
    name: Name
    task: Name
    world: Name
    world_version: Name
    settings: JsonObject
    versions: JsonObject
    task_info: TaskInfo
    parent_id: str | None
    parent_seq: int | None


class EventRow(Row):
    kind: str
    payload: JsonObject


class TaskPlanRow(Row):
    revision: int
    author: str
    sub_tasks: Sequence[SubTaskFields]
    reason: str


class IterationRow(Row):
    sub_task: int
    number: int


class PlanRow(Row):
    sub_task: int
    iteration: int
    revision: int
    author: str
    executor: str
    rationale: str
    depth: int
    attempted: Mapping[str, JsonObject]


class SubActionRow(Row):
    revision: int
    position: int
    name: str
    mode: str
    goal: str
    reason: str
    done_when: str
    max_steps: int
    pinned: bool
    author: str
    trigger: str | None


class CodeVersionRow(Row):
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


class TrialRow(Row):
    sub_task: int
    iteration: int
    revision: int
    sub_action: str
    version: int
    source_hash: str
    done_when: str
    outcome: str
    episodes: Count
    successes: Count
    prefixes: Count
    env_steps: Count
    error: str
    trials: Sequence[TrialEpisodeFields]
    evidence: Evidence


class RlConfigRow(Row):
    sub_task: int
    iteration: int
    revision: int
    author: str
    config: JsonObject
    config_hash: str
    note: str


class TrainingRunRow(Row):
    sub_task: int
    iteration: int
    revision: int
    run: int
    config_hash: str
    env_steps_planned: Count
    warm_from: int | None
    slots: Sequence[SlotFields]
    device: str
    explanation: str


class MetricRow(Row):
    run: int
    update: int
    env_steps: Count
    decisions: Count
    episodes: Count
    successes: Count
    return_mean: float | None
    length_mean: float | None
    kl: float | None
    clip_fraction: float | None
    entropy: float | None
    policy_loss: float | None
    value_loss: float | None
    explained_variance: float | None
    rate: float | None
    learning_rate: float | None
    dead_loops: Count
    milestones: Counts
    option_usage: Counts
    end_reasons: Ends
    rewards: Sums
    score: Share | None
    option_steps: Counts | None


METRICS = tuple(
    name
    for name, kind in get_type_hints(MetricRow).items()
    if kind in (int, float, float | None) and name not in Row.__annotations__
)
"""The columns of a metric row that are one number."""

_Return = TypedDict("_Return", {"return": float})


class EpisodeRow(Row, _Return):
    split: str
    owner: int
    variant: str
    index: int
    seed: int
    success: bool
    env_steps: Count
    decisions: Count
    dead_loop: bool
    end: str
    milestones: Sequence[str]
    actions: bytes | None
    cause: str | None
    vitals: Sums | None
    reached: Sequence[str] | None
    last: str | None


class EvaluationRow(Row):
    sub_task: int
    iteration: int
    revision: int
    number: int
    split: str
    variant: str
    first: Count
    episodes: Number
    successes: Count
    ci_low: Share
    ci_high: Share
    return_mean: float
    length_mean: Amount
    dead_loops: Count
    env_steps: Count
    run: int | None
    policy: str
    funnel: Counts
    milestones: Counts
    option_usage: Counts
    end_reasons: Ends
    rewards: Sums
    score: Share | None
    score_low: Share | None
    score_high: Share | None
    option_steps: Counts | None
    option_done: Counts | None
    failures: JsonObject | None


class VerdictRow(Row):
    sub_task: int
    iteration: int
    revision: int
    sub_action: str | None
    version: int | None
    author: str
    success: bool
    confidence: Share
    cause: str
    advice_slow: str
    advice_fast: str
    measured: bool | None
    better: str


class LlmCallRow(Row):
    call: str
    step: str
    role: str
    model: str
    state: str
    request_hash: str
    reply_hash: str | None
    error: str
    try_number: int
    reserved: Amount | None
    tokens_in: Count
    tokens_out: Count
    cost: Amount | None
    seconds: Amount


_FrameReturn = TypedDict("_FrameReturn", {"return": float | None})


class FrameRow(Row, _FrameReturn):
    source: str
    owner: int
    episode: int
    step: int
    format: str
    decision: str
    body: bytes
    primitive: str | None
    inner: str | None


class CheckpointRow(Row):
    run: int
    update: Count
    env_steps: Count
    kind: str
    artifact: str
    size: Count


class LogRow(Row):
    level: str
    event: str
    fields: JsonObject


class CommandRow(TypedDict):
    """The inbox is not in the sequence; its order is `rowid`."""

    rowid: int
    id: str
    session_id: str
    at: float
    author: str
    kind: str
    payload: JsonObject
    revision: int | None


Change = (
    tuple[Literal["session"], SessionRow]
    | tuple[Literal["event"], EventRow]
    | tuple[Literal["task_plan"], TaskPlanRow]
    | tuple[Literal["iteration"], IterationRow]
    | tuple[Literal["plan"], PlanRow]
    | tuple[Literal["sub_action"], SubActionRow]
    | tuple[Literal["code_version"], CodeVersionRow]
    | tuple[Literal["trial"], TrialRow]
    | tuple[Literal["rl_config"], RlConfigRow]
    | tuple[Literal["training_run"], TrainingRunRow]
    | tuple[Literal["metric"], MetricRow]
    | tuple[Literal["episode"], EpisodeRow]
    | tuple[Literal["evaluation"], EvaluationRow]
    | tuple[Literal["verdict"], VerdictRow]
    | tuple[Literal["llm_call"], LlmCallRow]
    | tuple[Literal["frame"], FrameRow]
    | tuple[Literal["checkpoint"], CheckpointRow]
    | tuple[Literal["log"], LogRow]
)
"""A row with the name of its table. `change[0] == "metric"` tells mypy what `change[1]` is."""

PARTS: Mapping[str, Sequence[tuple[str, str]]] = {
    "trial": (("successes", "episodes"), ("episodes", "prefixes")),
    "metric": (("successes", "episodes"), ("dead_loops", "episodes"), ("milestones", "episodes")),
    "evaluation": (
        ("successes", "episodes"), ("dead_loops", "episodes"), ("funnel", "episodes"), ("milestones", "episodes"),
    ),
}  # fmt: skip
"""Table -> (part, whole): columns of which the first, or each number in it, is never above the second."""

ROWS: Mapping[str, type] = {get_args(name)[0]: row for name, row in map(get_args, get_args(Change))}
TABLES: Mapping[type, str] = {row: name for name, row in ROWS.items()}
