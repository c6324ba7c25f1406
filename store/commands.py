"""What an operator can tell a session, one model a kind: parsed where it is sent and where it is taken. Pure.

What a command means for the plan (which sub-actions exist, what waits for approval) is the worker's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rlgpt.store.errors import BadCommand
from rlgpt.store.plan_edits import PlanEdit, first_problem
from rlgpt.store.row_types import JsonObject

LONGEST = 20_000
Text = Annotated[str, Field(max_length=LONGEST)]
Name = Annotated[str, Field(max_length=40)]
Apply = Literal["now", "next"]
"""now: also ends a PPO run in progress; next: from the next iteration on."""
Agent = Literal["planner", "slow", "fast", "critic"]
Budget = Literal["env_steps", "hours", "tokens", "cost"]


MOST_BUDGET = 10**15
"""A budget is less, so that its number is exact as a float."""


class _Command(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    needs_revision: ClassVar[bool] = False
    """Whether it answers a plan revision that its author saw."""

    def payload(self) -> JsonObject:
        """As it is stored beside its kind."""
        return self.model_dump(mode="json", exclude={"kind"}, exclude_none=True)


class Override(_Command):
    """Changes the plan."""

    needs_revision = True
    kind: Literal["override"] = "override"
    # A list, because strict pydantic takes no JSON array for a tuple.
    edits: Annotated[list[PlanEdit], Field(min_length=1, max_length=100)]
    apply: Apply = "next"


class Approve(_Command):
    needs_revision = True
    kind: Literal["approve"] = "approve"


class Reject(_Command):
    needs_revision = True
    kind: Literal["reject"] = "reject"
    text: Text = ""
    """Why; the slow agent reads it word for word."""


class Advise(_Command):
    kind: Literal["advise"] = "advise"
    agent: Agent
    text: Text


class Verdict(_Command):
    """A person is the critic, of a sub-action's last trial or of the iteration."""

    kind: Literal["verdict"] = "verdict"
    success: bool
    cause: Text
    sub_action: Name | None = None
    version: Annotated[int, Field(ge=1)] | None = None
    """Of the sub-action, the newest one that its author saw."""
    advice_slow: Text = ""
    advice_fast: Text = ""
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0


class EditCode(_Command):
    kind: Literal["edit_code"] = "edit_code"
    sub_action: Name
    source: Text
    apply: Apply = "next"


class EditReward(_Command):
    kind: Literal["edit_reward"] = "edit_reward"
    source: Text
    weight: Annotated[float, Field(ge=-100, le=100)] = 1.0
    apply: Apply = "next"


class StopTraining(_Command):
    """Ends the PPO run in progress; what it learnt is kept and evaluated."""

    kind: Literal["stop_training"] = "stop_training"
    run: Annotated[int, Field(ge=1)] | None = None
    """The one that its author saw."""


class CancelCall(_Command):
    """Ends the call to a model whose answer the session waits for; it is asked once more, then done without."""

    kind: Literal["cancel_call"] = "cancel_call"


class Pause(_Command):
    kind: Literal["pause"] = "pause"


class Resume(_Command):
    kind: Literal["resume"] = "resume"


class Stop(_Command):
    kind: Literal["stop"] = "stop"
    now: bool = False


class SetBudget(_Command):
    kind: Literal["budget"] = "budget"
    name: Budget
    value: Annotated[int | float, Field(ge=0, lt=MOST_BUDGET, allow_inf_nan=False)] | None
    """null: no limit."""

    def payload(self) -> JsonObject:
        return {"name": self.name, "value": self.value}


Command = Annotated[
    Override | Approve | Reject | Advise | Verdict | EditCode | EditReward | StopTraining | CancelCall
    | Pause | Resume | Stop | SetBudget,
    Field(discriminator="kind"),
]  # fmt: skip
_COMMAND: TypeAdapter[Command] = TypeAdapter(Command)
KINDS = (
    "override", "approve", "reject", "advise", "verdict", "edit_code", "edit_reward", "stop_training", "cancel_call",
    "pause", "resume", "stop", "budget",
)  # fmt: skip


def parse_command(kind: str, payload: JsonObject | None = None) -> Command:
    """The command of a kind and its stored payload. Raises BadCommand with one sentence."""
    if kind not in KINDS:
        raise BadCommand(f"there is no command {kind!r:.50}; there are {', '.join(KINDS)}")
    if payload is not None and not isinstance(payload, Mapping):
        raise BadCommand(f"the payload of {kind} must be an object")
    if payload and "kind" in payload:
        raise BadCommand(f"{kind} takes no 'kind'")
    try:
        return _COMMAND.validate_python({**(payload or {}), "kind": kind})
    except ValidationError as error:
        raise BadCommand(first_problem(error, kind)) from None


def check_revision(command: Command, revision: int | None) -> None:
    """Raises BadCommand where the command answers a plan and does not say which."""
    if command.needs_revision and (not isinstance(revision, int) or isinstance(revision, bool)):
        raise BadCommand(f"{command.kind} needs the plan revision that it answers")
