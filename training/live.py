"""What one running session consists of: the store, the world, the host, the agents' client, the inbox.

Every step of the loop gets this and nothing else. Opened once per trainer, closed once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.loop import Limits
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import History, Item
from rlgpt.store.progress import Progress
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer
from rlgpt.training.host.api import Admission, Host
from rlgpt.training.inbox import Inbox
from rlgpt.training.worlds.protocol import World

T = TypeVar("T")


class Interrupted(Exception):
    """A step was left because the operator stopped the session; nothing of it is kept."""


@dataclass
class Live:
    folder: SessionFolder
    settings: Settings
    writer: Writer
    world: World
    host: Host
    client: Client
    limits: Limits
    progress: Progress
    inbox: Inbox
    apply: Callable[[Live, bool], None]
    """Applies what is in the inbox (`commands.apply_pending`); the flag says PPO is running."""
    skills: list[Mapping[str, Any]] = field(default_factory=list)
    admissions: dict[tuple[str, str], Admission] = field(default_factory=dict)
    """(kind, source) -> admission in this trainer's host."""
    dry: dict[str, list[list[bytes]]] = field(default_factory=dict)
    """Task -> recorded views for dry runs."""
    sheets: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def history(self) -> History:
        return self.writer.history

    @property
    def seed(self) -> int:
        return self.settings.seed

    @cached_property
    def session_task(self) -> str:
        return self.settings.task

    def task_of(self, sub_task: int) -> str:
        """The world's task of a sub-task: the planner's where there is one, else the session's."""
        plans = self.history.task_plans
        return str(plans[-1]["sub_tasks"][sub_task]["task"]) if plans else self.session_task

    @property
    def task(self) -> str:
        return self.task_of(self.history.sub_task)

    def context(self) -> Context:
        """What the agents may see now."""
        if self.task not in self.sheets:
            self.sheets[self.task] = self.world.sheet(self.task)
        return Context(
            history=self.history,
            sheet=self.sheets[self.task],
            task=self.world.tasks[self.task],
            limits=self.limits,
            skills=self.skills,
            text=self.writer.text_of,
            env_steps_left=self.env_steps_left(),
        )

    def env_steps_left(self) -> int:
        most = self.history.budgets.get("env_steps", self.settings.budget.env_steps)
        return max(0, most - self.history.spent.env_steps) if most else 100_000_000

    def source(self, source_hash: str) -> str:
        return self.writer.text_of(source_hash)

    def item(self, name: str) -> Item:
        plan = self.history.plan
        item = plan.item(name) if plan else None
        if item is None:
            raise KeyError(f"the plan in force has no sub-action {name!r}")
        return item

    # ---- patience ---------------------------------------------------------------------------------
    def poll(self, training: bool = False) -> None:
        """Called at least ten times a second by everything that takes long: takes commands, sits out a pause.

        Raises Interrupted once a stop was requested.
        """
        self.apply(self, training)
        if self.history.pause_requested and not self.history.stop_requested:
            self._sit_out_pause(training)
        if self.history.stop_requested:
            raise Interrupted

    def _sit_out_pause(self, training: bool) -> None:
        phase = dict(self.history.phase)
        self.writer.event("waiting", **{"for": "paused"})
        while self.history.pause_requested and not self.history.stop_requested:
            time.sleep(0.1)
            self.apply(self, training)
        self.writer.event("phase", durable=False, **phase)

    def ask(self, call: Callable[[], T]) -> T:
        """Run one LLM call beside the loop so that commands are taken meanwhile; a stop abandons it."""
        result: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                result.append(call())
            except BaseException as error:  # handed to the caller below
                failure.append(error)

        thread = threading.Thread(target=run, name="llm-call", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.02)
            self.poll()
        if failure:
            raise failure[0]
        return result[0]

    def log(self, level: str, event: str, **fields: Any) -> None:
        with self.writer.transaction() as tx:
            tx.log(level, event, **fields)

    def close(self) -> None:
        self.inbox.close()
        self.host.close()
        self.writer.close()
        self.progress.close()
