"""Histories told part by part: what the agents' tests are tried on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rlgpt.agents.context import Context
from rlgpt.agents.loop import Limits
from rlgpt.store import event_payloads, events
from rlgpt.store.history import History
from tests.stories import Rows


class Told:
    """A story told row by row: `Told().iteration().plan(dig="code").code("dig").trial("dig", 5)`."""

    def __init__(self, settings: Mapping[str, Any] = MappingProxyType({}), **info: Any) -> None:
        self._rows = Rows()
        info = {"long_horizon": False} | info
        self._row("session", name="s", task="t", world="w", world_version="1", settings=settings, task_info=info)

    @property
    def history(self) -> History:
        return self._rows.history

    def _row(self, table: str, **columns: Any) -> Told:
        """One row, and what the worker decides after it."""
        self._rows.add(table, **columns)
        if table != "sub_action":  # its plan_in_force or plan_waiting follows in the same transaction
            self._rows.decide()
        return self

    def event(self, event: events.Event) -> Told:
        return self._row("event", kind=event_payloads.kind_of(event), payload=event_payloads.payload_of(event))

    def tasks(self, *names: str) -> Told:
        ordered = [{"task": name, "goal": name, "reason": ""} for name in names]
        return self._row("task_plan", revision=1, author="planner", sub_tasks=ordered, reason="")

    def iteration(self, number: int = 0, sub_task: int = 0) -> Told:
        return self._row("iteration", sub_task=sub_task, number=number)

    @property
    def where(self) -> dict[str, int]:
        iteration = self.history.iterations[-1]
        return {"sub_task": iteration.sub_task, "iteration": iteration.number}

    def plan(
        self, executor: str = "sequence", depth: int = 0, pinned: tuple[str, ...] = (), force: bool = True,
        done: str = "view.{}", triggers: Mapping[str, str] = MappingProxyType({}), max_steps: int = 50,
        goals: Mapping[str, str] = MappingProxyType({}), **modes: str,
    ) -> Told:  # fmt: skip
        revision = max(self.history.plans, default=0) + 1
        self._row(
            "plan", **self.where, revision=revision, author="slow", executor=executor, rationale="",
            depth=depth, attempted={},
        )  # fmt: skip
        for position, (name, mode) in enumerate(modes.items()):
            self._row(
                "sub_action", revision=revision, position=position, name=name, mode=mode,
                goal=goals.get(name, f"Do {name}."), reason="", done_when=done.format(name), max_steps=max_steps,
                pinned=name in pinned, author="slow", trigger=triggers.get(name),
            )  # fmt: skip
        return self.event(events.PlanInForce(revision) if force else events.PlanWaiting(revision))

    def code(
        self, name: str, source_hash: str = "", author: str = "fast", admitted: bool = True, rule: str = "top level",
        draft: int | None = None,
    ) -> Told:  # fmt: skip
        versions = self.history.attempts_of(name)
        now = [
            a for a in versions
            if a.iteration == self.where["iteration"] and a.author == "fast" and a.admission.get("draft", 1) == 1
        ]  # fmt: skip
        drafts = {"draft": draft} if draft else {}
        return self._row(
            "code_version", **self.where, sub_action=name, version=len(versions) + 1,
            attempt=len(now) + (draft in (None, 1)) if author == "fast" else 0, author=author,
            source_hash=source_hash or f"{name}{len(versions) + 1}", note="", admitted=admitted,
            admission=drafts | ({} if admitted else {"rule": rule, "line": 1, "message": "no import"}),
        )  # fmt: skip

    def trial(
        self, name: str, successes: int = 5, outcome: str = "", error: str = "", prefixes: int = 5, episodes: int = 5,
        version: int = 0, trials: Sequence[Any] = (), **evidence: Any,
    ) -> Told:  # fmt: skip
        last = self.history.attempts_of(name)[version - 1]
        item = self.history.plan.item(name) if self.history.plan else None
        return self._row(
            "trial", **self.where, revision=self.history.revision, sub_action=name, version=last.version,
            source_hash=last.source_hash, done_when=item.done_when if item else "",
            outcome=outcome or ("accepted" if successes >= 3 else "failed"), episodes=episodes, successes=successes,
            prefixes=prefixes, env_steps=100, error=error, evidence=evidence, trials=trials,
        )  # fmt: skip

    def verdict(
        self, name: str | None = None, success: bool = False, version: int | None = None, **advice: str
    ) -> Told:
        last = self.history.attempts_of(name)[-1] if name else None
        told = {"cause": "", "advice_slow": "", "advice_fast": ""} | advice
        return self._row(
            "verdict", **self.where, revision=self.history.revision, sub_action=name,
            version=version or (last.version if last else None), author="critic", success=success, confidence=0.8,
            measured=False, better="", **told,
        )  # fmt: skip

    def config(self, **config: Any) -> Told:
        return self._row(
            "rl_config", **self.where, revision=self.history.revision, author="fast", config=config,
            config_hash=str(sorted(config.items())), note="",
        )  # fmt: skip

    def train(self, ended: str = "finished") -> Told:
        run = len(self.history.runs) + 1
        self._row(
            "training_run", **self.where, revision=self.history.revision, run=run, config_hash="",
            env_steps_planned=2048, warm_from=None, slots=[], device="cpu", explanation="",
        )  # fmt: skip
        if ended:
            self.event(events.TrainingEnded(run=run, state=ended, reason="", env_steps=2048, decisions=500, updates=1))
        return self

    def evaluate(
        self, successes: int, episodes: int = 20, split: str = "dev", variant: str = "full", first: int = 0,
        run: int | None = None, **more: Any,
    ) -> Told:  # fmt: skip
        rate = successes / episodes
        score = more.pop("score", None)
        empty: dict[str, Any] = {key: {} for key in ("funnel", "milestones", "option_usage", "end_reasons", "rewards")}
        return self._row(
            "evaluation", **self.where, revision=self.history.revision,
            number=self.history.counts.get("evaluation", 0) + 1, split=split, variant=variant, first=first,
            episodes=episodes, successes=successes, ci_low=max(0.0, rate - 0.2), ci_high=min(1.0, rate + 0.2),
            return_mean=0.0, length_mean=100.0, dead_loops=0, env_steps=100 * episodes, run=run,
            policy="ppo" if run and variant != "plan" else "plan",
            score=score, score_low=score, score_high=score, **(empty | more),
        )  # fmt: skip


def context(told: Told | History, sheet: dict[str, Any], task: Any, **fields: Any) -> Context:
    history = told.history if isinstance(told, Told) else told
    limits = fields.pop("limits", Limits())
    return Context(history=history, sheet=sheet, task=task, limits=limits, env_steps_left=200_000, **fields)
