"""RL as a tool: its configuration, and the PPO runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rlgpt.agents import fast, loop
from rlgpt.agents.choice import warm_start_source
from rlgpt.agents.contracts import RlConfigAsked, RlConfigReply
from rlgpt.store import tables
from rlgpt.store.errors import StoreError
from rlgpt.store.history import IterationState, PlanState, Run
from rlgpt.training.admitting import admit, admit_again
from rlgpt.training.budgets import over_budget
from rlgpt.training.configs import config_row, shared_by_arms, with_own_reward
from rlgpt.training.live import Interrupted, Live
from rlgpt.training.observer import Moment, Observer, Signal, Start
from rlgpt.training.policies import acting_of, candidate, coded_action, plan_items
from rlgpt.training.ppo.train import train as run_ppo
from rlgpt.training.seeds import stream_seed
from rlgpt.training.worlds.protocol import score_of

KEPT_ROLLOUTS = 2
"""Rollout checkpoints kept on the disk; boundaries are kept for good."""


def configure(live: Live, step: loop.Configure) -> None:
    context = live.context()
    asked = live.ask(lambda: fast.configure(live.client, context))
    refused = _reward_refused(live, asked)
    if refused:
        asked = live.ask(lambda: fast.configure(live.client, context, refused))
        refused = _reward_refused(live, asked)
    own = with_own_reward(asked, live.writer.text(asked.reward_source) if asked.reward_source and not refused else "")
    reply = shared_by_arms(
        own, live.settings.method, live.env_steps_left(), context.iterations_left, bool(live.history.scored)
    )
    config = reply.model_dump(mode="json")
    note = config.pop("note")
    iteration = live.history.iteration
    assert iteration is not None
    live.writer.add(config_row(iteration, step.revision, "fast", config, note), durable=True)


def _reward_refused(live: Live, asked: RlConfigAsked) -> str:
    if not asked.reward_source:
        return ""
    told = admit(live, "reward", asked.reward_source)
    if told.admitted:
        return ""
    sentence = f"rule {told.rule}, line {told.line}: {told.message}"
    live.log("warning", "generated reward refused", sentence=sentence, source=live.writer.text(asked.reward_source))
    return sentence


def train(live: Live, step: loop.Train) -> None:
    history = live.history
    iteration, plan = history.iteration, history.plan
    assert iteration is not None and plan is not None and iteration.config is not None
    config = RlConfigReply.model_validate(dict(iteration.config.config))
    run = history.runs[step.run] if step.run is not None else None
    attempts = acting_of(live, plan)
    rewards = [term.argument for term in config.reward if term.term == "generated"]
    for name in rewards:
        admit_again(live, "reward", live.source(name))
    planned = run.env_steps_planned if run else min(config.env_steps, live.env_steps_left())
    resumed = _checkpoint(live, run) if run and run.checkpoint else None
    warm_run, warm = None, None
    if resumed is None and not (run and run.warm_from is None):
        warm_run, warm = _warm_start(live, iteration, run)
    observer = TrainingObserver(live, plan, iteration, planned, run, warm_run)
    try:
        result = run_ppo(
            live.world,
            live.task,
            config,
            [coded_action(live, attempt) for attempt in attempts],
            live.host,
            seed=stream_seed(live.seed, "run", iteration.sub_task, iteration.number, observer.number),
            device=live.settings.device,
            kernel=live.settings.kernel,
            plan=plan_items(live, plan, attempts),
            sources={name: live.source(name) for name in (*rewards, *(a.source_hash for a in attempts))},
            warm=warm,
            resume=resumed,
            env_steps=planned,
            observer=observer,
        )
    except ValueError as error:  # ConfigError, ActionSpaceError, RewardError ...: a sentence about the configuration
        _give_up(live, observer, str(error))
        return
    if history.stop_requested:
        raise Interrupted
    with live.writer.transaction(durable=True) as tx:
        tx.event(
            "training_ended",
            run=observer.number,
            state=result.state,
            reason=observer.reason,
            env_steps=result.env_steps,
            decisions=result.decisions,
            updates=result.updates,
        )
        live.write_deaths(tx)


def _give_up(live: Live, observer: TrainingObserver, sentence: str) -> None:
    """A run that cannot be made, or breaks: one row that says why; the iteration goes on without it."""
    if observer.run is None:
        observer.on_start(Start([], False, "cpu", "not started", ""))
    run = live.history.runs[observer.number]
    with live.writer.transaction(durable=True) as tx:
        tx.event(
            "training_ended",
            run=observer.number,
            state="failed",
            reason=sentence,
            env_steps=run.env_steps,
            decisions=run.decisions,
            updates=run.updates,
        )


def _warm_start(live: Live, iteration: IterationState, run: Run | None) -> tuple[Run | None, bytes | None]:
    """The run to start from and its checkpoint. Without the file PPO starts with a fresh policy: slower, not wrong."""
    try:
        warm_run = _origin(live, iteration, run)
        return warm_run, _checkpoint(live, warm_run) if warm_run else None
    except StoreError as error:
        live.log("warning", "warm start", sentence=f"{error}; PPO starts with a fresh policy")
        return None, None


def _origin(live: Live, iteration: IterationState, run: Run | None) -> Run | None:
    """The run to start from: the one superseded in this iteration, else that of `warm_start_source`."""
    history = live.history
    if run is not None and run.warm_from is not None:
        return history.runs[run.warm_from]
    superseded = [history.runs[r] for r in iteration.runs if history.runs[r].state == "superseded"]
    if superseded and superseded[-1].checkpoint:
        return superseded[-1]
    best = warm_start_source(history) if live.settings.method.warm else None
    return candidate(live, best).run if best else None


def _checkpoint(live: Live, run: Run) -> bytes:
    assert run.checkpoint is not None
    return live.reader.artifact(str(run.checkpoint["artifact"]))


def _trained(live: Live) -> tuple[Counter[str], int]:
    """(episodes that reached each milestone, episodes) of all training so far, without what a resume superseded."""
    reached: Counter[str] = Counter()
    episodes = 0
    for row in live.reader.rows("metric", columns=["seq", "run", "episodes", "milestones"]):
        if not any(after < row["seq"] < before for after, before in live.history.runs[row["run"]].hidden):
            reached.update(row["milestones"])
            episodes += row["episodes"]
    return reached, episodes


class TrainingObserver(Observer):
    """Turns what PPO tells into rows, and the operator's commands into signals."""

    def __init__(
        self,
        live: Live,
        plan: PlanState,
        iteration: IterationState,
        planned: int,
        run: Run | None,
        warm: Run | None,
    ) -> None:
        self.live, self.plan, self.iteration, self.planned = live, plan, iteration, planned
        self.run, self.warm = run, warm
        self.number = run.run if run else max(live.history.runs, default=0) + 1
        self.reason = ""
        self._paused = False
        self._kept: list[str] = []
        self._metric: tables.Metric | None = None
        self._frames: list[Moment] = []
        self._env_steps = run.env_steps if run else 0
        self._reached, self._episodes = _trained(live)

    def on_start(self, start: Start) -> None:
        if self.run is not None:
            return
        config = self.iteration.config
        assert config is not None
        with self.live.writer.transaction(durable=True) as tx:
            tx.add(
                tables.TrainingRun(
                    sub_task=self.iteration.sub_task,
                    iteration=self.iteration.number,
                    revision=self.plan.revision,
                    run=self.number,
                    config_hash=config.config_hash,
                    env_steps_planned=self.planned,
                    warm_from=self.warm.run if self.warm and start.warm else None,
                    slots=list(start.slots),
                    device=start.device,
                    explanation=start.explanation,
                )
            )
        self.run = self.live.history.runs[self.number]

    def on_update(self, metrics: dict[str, Any]) -> None:
        """Kept until its checkpoint comes: together they are one transaction, so a kill costs one rollout at most."""
        self._reached.update(metrics["milestones"])
        self._episodes += metrics["episodes"]
        task = self.live.world.tasks[self.live.session_task]
        score = score_of(self.live.world, task, self._reached, self._episodes)
        self._metric = tables.Metric(run=self.number, **metrics, score=score)
        self.live.progress.steps(metrics["env_steps"] - self._env_steps)
        self._env_steps = metrics["env_steps"]

    def on_checkpoint(self, blob: bytes, update: int, env_steps: int, kind: str) -> None:
        name = self.live.writer.artifact(blob)
        with self.live.writer.transaction(durable=kind == "boundary") as tx:
            if self._metric is not None:
                tx.add(self._metric)
                self.live.write_moments(tx, "train", self.number, self._frames)
            tx.add(
                tables.Checkpoint(
                    run=self.number, update=update, env_steps=env_steps, kind=kind, artifact=name, size=len(blob)
                )
            )
            self.live.write_deaths(tx)
        self._metric = None
        self._frames.clear()
        if kind == "rollout":
            self._kept.append(name)
        while len(self._kept) > (0 if kind == "boundary" else KEPT_ROLLOUTS):
            old = self._kept.pop(0)
            if old != name:
                self.live.writer.discard(old)

    def on_frame(self, moment: Moment) -> None:
        self._frames.append(moment)

    def poll(self) -> Signal:
        live = self.live
        live.need_room()
        live.clock = self.clock
        live.apply(live, True)
        live.clock = None
        self.wake = live.rehearsal.wake(live.history)
        history = live.history
        if history.stop_requested:
            return "stop"
        if history.pause_requested:
            if not self._paused:
                self._paused = True
                self._phase = dict(history.phase)
                live.say_waiting("paused")
            return "pause"
        if self._paused:
            self._paused = False
            live.writer.event("phase", durable=False, **self._phase)
        if history.revision != self.plan.revision:
            self.reason = f"superseded by plan revision {history.revision}"
            return "supersede"
        if history.training_stop_requested:
            self.reason = "stopped early by the operator"
            return "stop"
        if sentence := over_budget(live):
            self.reason = sentence
            return "stop"
        return "go"
