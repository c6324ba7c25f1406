"""What is left of a session, by the loop itself: its next steps on a history in which each is supposed to be done.

Supposed is: code is accepted at its first trial, the target is never reached, a model plans what it planned before, a
person approves at once. It is no promise: a budget, a success or a failure that repeats changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlgpt.agents import choice, loop
from rlgpt.store.events import IterationResult, VersionChosen
from rlgpt.store.history import (
    Attempt,
    ConfigState,
    EvaluationState,
    History,
    IterationState,
    PlanState,
    Run,
    TaskPlanState,
    TrialState,
    VerdictState,
)
from rlgpt.store.row_types import SubTaskFields

MOST = 500
"""Steps that are looked ahead."""
EPISODES = 10
"""Of a supposed trial."""


def steps_ahead(h: History, limits: loop.Limits, current: loop.Step, env_steps_left: int) -> dict[str, int]:
    """What follows `current` until the session's end: steps by name; of Evaluate the episodes, of Train the env steps.

    Empty where the loop's rules could not be followed to the end.
    """
    world = _Supposed(h, limits, env_steps_left)
    counts: dict[str, int] = {}
    world.do(current)
    for _ in range(MOST):
        step = loop.next_step(world.h, limits, "no env steps are left" if world.env_steps_left <= 0 else "")
        if isinstance(step, loop.Done):
            return counts
        if not isinstance(step, loop.Wait):
            name = type(step).__name__
            counts[name] = counts.get(name, 0) + world.amount(step)
        world.do(step)
    return {}


class _Supposed:
    """A history that goes on as if each step had been done; the real one stays as it is."""

    def __init__(self, h: History, limits: loop.Limits, env_steps_left: int) -> None:
        self.h = h.copy()
        self.limits, self.env_steps_left = limits, env_steps_left

    def amount(self, step: loop.Step) -> int:
        """In the unit of `steps_ahead`."""
        if isinstance(step, loop.Evaluate):
            return step.episodes
        return self._env_steps(step) if isinstance(step, loop.Train) else 1

    def do(self, step: loop.Step) -> None:
        self.h.seq += 1
        match step:
            case loop.PlanTasks():
                unknown: SubTaskFields = {"task": "", "goal": "", "reason": ""}
                before = self.h.task_plans[-1].sub_tasks if self.h.task_plans else [unknown]
                self.h.task_plans.append(TaskPlanState(0, "", before, "", self.h.seq))
            case loop.OpenIteration():
                self.h.iterations.append(IterationState(step.sub_task, step.number, self.h.seq))
            case loop.Plan():
                self._plan(step)
            case loop.Code():
                self._code(step)
            case loop.Trial():
                self._trial(step)
            case loop.JudgeItem():
                self._judge_item(step.item, step.version)
            case loop.Configure():
                self._iteration.config = ConfigState(step.revision, "", self._config, f"{self.h.seq}", "", self.h.seq)
            case loop.Train():
                self._train(step)
            case loop.Evaluate():
                self._evaluate(step)
            case loop.JudgeIteration():
                self._iteration.verdict, self._iteration.reopened = self._verdict(), False
            case loop.Wait():
                self._answer(step)
        for decision in choice.undecided(self.h):
            if isinstance(decision, VersionChosen):
                self.h.plans[decision.revision].chosen[decision.item] = decision
            elif isinstance(decision, IterationResult):
                next(
                    i for i in self.h.iterations if (i.sub_task, i.number) == (decision.sub_task, decision.iteration)
                ).result = decision
            else:
                self.h.incumbents[decision.sub_task] = decision

    @property
    def _iteration(self) -> IterationState:
        return self.h.iterations[-1]

    @property
    def _config(self) -> Mapping[str, Any]:
        """The newest configuration of PPO, as an answer of the fast agent."""
        configs = [i.config for i in self.h.iterations if i.config]
        return configs[-1].config if configs else {}

    def _env_steps(self, step: loop.Train) -> int:
        planned = self.h.runs[step.run].env_steps_planned if step.run in self.h.runs else 0
        share = self.env_steps_left // (max(self.limits.iterations - self._iteration.number, 0) + 1)
        env_steps = planned or int(self._config.get("env_steps", 0)) or max(share, 1)
        return max(min(env_steps, self.env_steps_left), 0)

    def _plan(self, step: loop.Plan) -> None:
        last = self.h.plan if self.h.plan and self.h.plan.sub_task == step.sub_task else None
        items = [
            replace(item, mode="rl") if step.last_depth and item.name in step.failed else item
            for item in (last.items if last else ())
            if not (step.last_depth and item.name in step.failed and item.trigger)
        ]
        revision = max(self.h.plans, default=0) + 1
        self.h.plans[revision] = PlanState(
            step.sub_task, step.iteration, revision, "slow", self._executor(last), "",
            last.depth + 1 if last and step.failed else 0, {}, self.h.seq, items,
        )  # fmt: skip
        self._iteration.plans.append(revision)
        self._in_force(revision)

    def _executor(self, last: PlanState | None) -> str:
        return last.executor if last else "sequence" if self.limits.arm == "code" else "policy"

    def _in_force(self, revision: int) -> None:
        if self.h.revision in self.h.plans and self.h.revision != revision:
            self.h.plans[self.h.revision].status = "superseded"
        self.h.revision = revision
        self.h.plans[revision].status = "in_force"

    def _code(self, step: loop.Code) -> None:
        version = max((a.version for a in self.h.attempts_of(step.item)), default=0) + 1
        self.h.attempts.append(
            Attempt(self._iteration.sub_task, self._iteration.number, step.item, version, step.attempt, "fast",
                    f"{self.h.seq}", "", True, {"draft": step.draft} if step.draft else {}, self.h.seq)
        )  # fmt: skip

    def _trial(self, step: loop.Trial) -> None:
        attempt = self.h.attempt(step.item, step.version)
        item = self.h.plan.item(step.item) if self.h.plan else None
        if attempt is None or item is None:
            return
        attempt.trial = TrialState(
            self._iteration.number, self.h.revision, "accepted", EPISODES, EPISODES, 0, 0, "", self.h.seq
        )
        attempt.done_when, attempt.verdict = item.done_when, None
        attempt.trials.append((attempt.done_when, attempt.trial))

    def _judge_item(self, item: str, version: int) -> None:
        attempt = self.h.attempt(item, version)
        if attempt:
            attempt.verdict = self._verdict()

    def _verdict(self) -> VerdictState:
        return VerdictState("", False, 0.0, "", "", "", None, "", self.h.seq)

    def _train(self, step: loop.Train) -> None:
        env_steps = self._env_steps(step)
        if step.run in self.h.runs:
            run = self.h.runs[step.run]
            self.env_steps_left -= max(env_steps - run.env_steps, 0)
        else:
            number = max(self.h.runs, default=0) + 1
            run = Run(number, self._iteration.number, step.revision, "", env_steps, None, [], "", "", self.h.seq)
            self.h.runs[number] = run
            self._iteration.runs.append(number)
            self.env_steps_left -= env_steps
        run.state, run.env_steps = "finished", env_steps

    def _evaluate(self, step: loop.Evaluate) -> None:
        owner = next(
            (i for i in reversed(self.h.iterations)
             if (i.sub_task, i.number) == (self.h.sub_task, step.iteration)), self._iteration
        )  # fmt: skip
        revision = self.h.revision if step.split == "dev" or not owner.plans else owner.plans[-1]
        runs = [self.h.runs[r] for r in owner.runs if self.h.runs[r].revision == revision]
        run = runs[-1].run if runs and runs[-1].state != "failed" else None
        owner.evaluations.append(
            EvaluationState(
                number=0, iteration=owner.number, revision=revision, split=step.split, variant=step.variant,
                episodes=step.episodes, successes=0, return_mean=0.0, length_mean=0.0, dead_loops=0, run=run,
                policy="ppo" if run else "plan", funnel={}, milestones={}, option_usage={}, end_reasons={},
                rewards={}, seq=self.h.seq,
            )
        )  # fmt: skip

    def _answer(self, step: loop.Wait) -> None:
        if step.reason == "approval":
            self._in_force(step.revision)
        elif step.reason == "paused":
            self.h.pause_requested = False
        elif step.item:
            last = choice.best_draft(choice.rounds(self.h.attempts_of(step.item))[-1])
            last.verdict = self._verdict()
        else:
            self._iteration.verdict, self._iteration.reopened = self._verdict(), False
