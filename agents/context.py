"""What every agent may know: the folded history, the world sheet, the task, the limits, the skills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rlgpt.agents.contracts import RlConfigAsked
from rlgpt.agents.loop import Limits
from rlgpt.agents.probes import Prober
from rlgpt.store.history import History, Item
from rlgpt.store.row_types import JsonObject


class TaskInfo(Protocol):
    """The world's task as the agents need it (training/worlds/protocol.py, Task)."""

    @property
    def id(self) -> str: ...
    @property
    def prompt(self) -> str: ...
    @property
    def horizon(self) -> int: ...
    @property
    def milestones(self) -> tuple[str, ...]: ...
    @property
    def kind(self) -> str: ...
    @property
    def sub_tasks(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Context:
    history: History
    sheet: JsonObject
    """`World.sheet(task)` with `features` ({name: doc}), `default_features` and `targets` beside it."""
    task: TaskInfo
    limits: Limits
    skills: Sequence[JsonObject] = ()
    """Of the session's snapshot: {name, goal, done_when, source, measured}."""
    text: Callable[[str], str] = field(default=lambda name: "")
    """The text of a hash (sources)."""
    series: Callable[[int], JsonObject] = field(default=lambda run: {})
    """Ten points of a training run (`store/training_series.py`)."""
    env_steps_left: int = 0
    """Of the session's budget, for trials and training."""
    restorable: bool = False
    """Whether states of the world can be restored, as `recovery` and `branches` need."""
    prober: Prober | None = None
    """Runs what the fast agent tries before it answers; None where nothing may be tried."""
    config_fault: Callable[[RlConfigAsked], str] = field(default=lambda reply: "")
    """Why PPO could not be started with a configuration; empty where it could."""

    @property
    def pins(self) -> list[Item]:
        """Sub-actions of this sub-task that the operator has fixed."""
        plan = self.history.edited_plan
        return [i for i in plan.items if i.pinned] if plan and plan.sub_task == self.history.sub_task else []

    def advice(self, agent: str) -> list[str]:
        """What the operator told this agent, oldest first, word for word."""
        return [advice.text for advice in self.history.advice if advice.agent == agent]

    @property
    def iterations_left(self) -> int:
        """Passes of the outer loop that may still train, this one and those of later sub-tasks included."""
        iteration = self.history.iteration
        passes = self.limits.iterations + 1
        ordered = self.history.task_plans[-1].sub_tasks if self.history.task_plans else ()
        later = max(0, len(ordered) - 1 - self.history.sub_task)
        return max(1, passes - (iteration.number if iteration else 0)) + passes * later
