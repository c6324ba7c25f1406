"""RL as a tool: its configuration, and the PPO runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rlgpt.agents import fast, loop
from rlgpt.agents.contracts import RlConfigAsked, RlConfigReply
from rlgpt.agents.outcome import warm_start_source
from rlgpt.store import events, tables
from rlgpt.store.errors import StoreError
from rlgpt.store.history import IterationState, PlanState, Run
from rlgpt.store.row_types import MetricRow, tell_refusal
from rlgpt.store.states import SLOT
from rlgpt.training.options.film import FrameSnapshot
from rlgpt.training.options.lane import EpisodeResult
from rlgpt.training.options.observer import Observer, Signal, Start
from rlgpt.training.ppo.setup import build_setup, require_affordable
from rlgpt.training.seeds import stream_seed
from rlgpt.training.session.budgets import over_budget
from rlgpt.training.session.runtime import Interrupted, SessionRuntime
from rlgpt.training.steps.admission import admit, admit_again
from rlgpt.training.steps.candidates import acting_of, candidate, coded_action, plan_items
from rlgpt.training.steps.config_rows import config_row, observed, shared_by_arms, with_own_reward
from rlgpt.training.steps.outdated import outdated
from rlgpt.training.steps.result_rows import training_episode_row
from rlgpt.training.worlds.faults import world_fault
from rlgpt.training.worlds.optional_parts import score_of

KEPT_ROLLOUTS = 2
"""Rollout checkpoints kept on the disk; boundaries are kept for good."""


def configure(runtime: SessionRuntime, step: loop.Configure) -> None:
    context = replace(runtime.context(), config_fault=_config_fault(runtime))
    answer = runtime.ask(lambda: fast.configure(runtime.client, context))
    refused = _reward_refused(runtime, answer)
    if refused:
        source = answer.reward_source
        answer = runtime.ask(lambda: fast.configure(runtime.client, context, refused, source))
        refused = _reward_refused(runtime, answer)
    if outdated(runtime, step):
        return
    own = with_own_reward(
        answer, runtime.writer.text(answer.reward_source) if answer.reward_source and not refused else ""
    )
    reply = shared_by_arms(
        own, runtime.settings.method, runtime.env_steps_left(), context.iterations_left, bool(runtime.history.scored)
    )
    config = observed(reply, runtime.settings.observation).model_dump(mode="json")
    note = config.pop("note")
    iteration = runtime.history.iteration
    assert iteration is not None
    runtime.writer.add(config_row(iteration, step.revision, "fast", config, note), durable=True)


def _config_fault(runtime: SessionRuntime) -> Callable[[RlConfigAsked], str]:
    """Says of a configuration why PPO could not be started with it, by trying: the agent is asked again before an
    iteration is spent on it. Its reward function is not run; whether it is admitted is asked later."""
    plan = runtime.history.plan
    if runtime.reworded or plan is None:
        return lambda reply: ""
    attempts = acting_of(runtime, plan)
    options = [coded_action(runtime, attempt) for attempt in attempts]
    items = plan_items(runtime, plan, attempts)
    sources = {attempt.source_hash: runtime.source(attempt.source_hash) for attempt in attempts}
    world, task = runtime.world, runtime.task
    left, whole = runtime.env_steps_left(), runtime.settings.method.whole_budget

    def fault(reply: RlConfigAsked) -> str:
        config = observed(with_own_reward(reply, "own" if reply.reward_source else ""), runtime.settings.observation)
        rewards = {term.argument: "" for term in config.reward if term.term == "generated"}
        try:
            setup = build_setup(world, task, config, options, items, sources | rewards, [])
            if env_steps := left if whole else min(reply.env_steps, left):
                require_affordable(setup, env_steps)
        except ValueError as error:
            if world_fault(error, world):
                raise
            return str(error).removesuffix(".")
        return ""

    return fault


def _reward_refused(runtime: SessionRuntime, reply: RlConfigAsked) -> str:
    if not reply.reward_source:
        return ""
    admission = admit(runtime, "reward", reply.reward_source)
    if admission.admitted:
        return ""
    sentence = tell_refusal(admission.rule, admission.line, admission.message)
    runtime.log(
        "warning", "generated reward refused", sentence=sentence, source=runtime.writer.text(reply.reward_source)
    )
    return sentence


def train(runtime: SessionRuntime, step: loop.Train) -> None:
    from rlgpt.training.ppo.run import train as run_ppo  # late: torch comes with it, and takes seconds

    history = runtime.history
    iteration, plan = history.iteration, history.plan
    assert iteration is not None and plan is not None and iteration.config is not None
    config = RlConfigReply.model_validate(dict(iteration.config.config))
    run = history.runs[step.run] if step.run is not None else None
    attempts = acting_of(runtime, plan)
    rewards = [term.argument for term in config.reward if term.term == "generated"]
    for name in rewards:
        admit_again(runtime, "reward", runtime.source(name))
    planned = run.env_steps_planned if run else min(config.env_steps, runtime.env_steps_left())
    resumed = _checkpoint(runtime, run) if run and run.checkpoint else None
    warm_run, warm = None, None
    if resumed is None and not (run and run.warm_from is None):
        warm_run, warm = warm_start(runtime, iteration, run)
    observer = TrainingObserver(runtime, plan, iteration, planned, run, warm_run)
    try:
        result = run_ppo(
            runtime.world,
            runtime.task,
            config,
            [coded_action(runtime, attempt) for attempt in attempts],
            runtime.host,
            seed=stream_seed(runtime.seed, "run", iteration.sub_task, iteration.number, observer.number),
            device=runtime.settings.device,
            kernel=runtime.settings.kernel,
            plan=plan_items(runtime, plan, attempts),
            sources={name: runtime.source(name) for name in (*rewards, *(a.source_hash for a in attempts))},
            warm=warm,
            resume=resumed,
            env_steps=planned,
            observer=observer,
        )
    except ValueError as error:  # ConfigError, ActionSpaceError, RewardError ...: a sentence about the configuration
        if world_fault(error, runtime.world):
            raise
        _give_up(runtime, observer, str(error))
        return
    with runtime.writer.transaction(durable=True) as tx:
        tx.event(
            events.TrainingEnded(
                run=observer.number,
                state=result.state,
                reason=observer.reason,
                env_steps=result.env_steps,
                decisions=result.decisions,
                updates=result.updates,
            )
        )
        runtime.write_deaths(tx)


def _give_up(runtime: SessionRuntime, observer: TrainingObserver, sentence: str) -> None:
    """A run that cannot be made, or breaks: one row that says why; the iteration goes on without it."""
    if observer.run is None:
        observer.on_start(Start([], False, "cpu", "not started", ""))
    run = runtime.history.runs[observer.number]
    with runtime.writer.transaction(durable=True) as tx:
        tx.event(
            events.TrainingEnded(
                run=observer.number,
                state="failed",
                reason=sentence,
                env_steps=run.env_steps,
                decisions=run.decisions,
                updates=run.updates,
            )
        )


def warm_start(runtime: SessionRuntime, iteration: IterationState, run: Run | None) -> tuple[Run | None, bytes | None]:
    """The run to start from and its checkpoint. Without the file PPO starts with a fresh policy: slower, not wrong."""
    try:
        warm_run = _origin(runtime, iteration, run)
        return warm_run, _checkpoint(runtime, warm_run) if warm_run else None
    except StoreError as error:
        runtime.log("warning", "warm start", sentence=f"{error}; PPO starts with a fresh policy")
        return None, None


def _origin(runtime: SessionRuntime, iteration: IterationState, run: Run | None) -> Run | None:
    """The run to start from: the one superseded in this iteration, else that of `warm_start_source`."""
    history = runtime.history
    if run is not None and run.warm_from is not None:
        return history.runs[run.warm_from]
    superseded = [history.runs[r] for r in iteration.runs if history.runs[r].state == "superseded"]
    if superseded and superseded[-1].checkpoint:
        return superseded[-1]
    best = warm_start_source(history) if runtime.settings.method.warm else None
    return candidate(runtime, best).run if best else None


def _checkpoint(runtime: SessionRuntime, run: Run) -> bytes:
    assert run.checkpoint is not None
    return runtime.reader.artifact(run.checkpoint.artifact)


def _trained(runtime: SessionRuntime) -> tuple[Counter[str], int]:
    """(episodes that reached each milestone, episodes) of all training so far, without what a resume superseded."""
    reached: Counter[str] = Counter()
    episodes = 0
    for row in runtime.reader.rows(MetricRow, columns=["seq", "run", "episodes", "milestones"]):
        if not any(after < row["seq"] < before for after, before in runtime.history.runs[row["run"]].hidden):
            reached.update(row["milestones"])
            episodes += row["episodes"]
    return reached, episodes


class TrainingObserver(Observer):
    """Turns what PPO tells into rows, and the operator's commands into signals."""

    films = True

    def __init__(
        self,
        runtime: SessionRuntime,
        plan: PlanState,
        iteration: IterationState,
        planned: int,
        run: Run | None,
        warm: Run | None,
    ) -> None:
        self.runtime, self.plan, self.iteration, self.planned = runtime, plan, iteration, planned
        self.run, self.warm = run, warm
        self.number = run.run if run else max(runtime.history.runs, default=0) + 1
        self.reason = ""
        self._paused = self._queued = False
        rollouts = [c.artifact for c in run.checkpoints if c.kind == "rollout"] if run else []
        self._rollout_checkpoints = rollouts[-KEPT_ROLLOUTS:]  # an earlier worker's are discarded in their turn
        self._metric: tables.Metric | None = None
        self._films: list[tuple[EpisodeResult, list[FrameSnapshot]]] = []
        self._env_steps = run.env_steps if run else 0
        self._reached, self._episodes = _trained(runtime)

    def on_start(self, start: Start) -> None:
        if self.run is not None:
            return
        config = self.iteration.config
        assert config is not None
        with self.runtime.writer.transaction(durable=True) as tx:
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
        self.run = self.runtime.history.runs[self.number]

    def on_update(self, metrics: dict[str, Any]) -> None:
        """Keep the row until its checkpoint comes: both are one transaction, so a kill costs one rollout at most."""
        self._reached.update(metrics["milestones"])
        self._episodes += metrics["episodes"]
        task = self.runtime.world.tasks[self.runtime.session_task]
        score = score_of(self.runtime.world, task, self._reached, self._episodes)
        self._metric = tables.Metric(run=self.number, **metrics, score=score)
        self.runtime.progress.steps(metrics["env_steps"] - self._env_steps)
        self._env_steps = metrics["env_steps"]

    def on_checkpoint(self, blob: bytes, update: int, env_steps: int, kind: str) -> None:
        name = self.runtime.writer.artifact(blob)
        with self.runtime.writer.transaction(durable=kind == "boundary") as tx:
            for result, moments in self._films:
                tx.add(training_episode_row(self.number, result))
                self.runtime.write_moments(tx, "train", self.number, moments)
            if self._metric is not None:
                tx.add(self._metric)
            tx.add(
                tables.Checkpoint(
                    run=self.number, update=update, env_steps=env_steps, kind=kind, artifact=name, size=len(blob)
                )
            )
            self.runtime.write_deaths(tx)
        self._metric = None
        self._films.clear()
        if kind == "rollout":
            self._rollout_checkpoints.append(name)
        while len(self._rollout_checkpoints) > (0 if kind == "boundary" else KEPT_ROLLOUTS):
            old = self._rollout_checkpoints.pop(0)
            if old != name:
                self.runtime.writer.discard(old)

    def on_film(self, result: EpisodeResult, moments: list[FrameSnapshot]) -> None:
        self._films.append((result, moments))

    def poll(self) -> Signal:
        runtime = self.runtime
        runtime.need_room()
        runtime.clock = self.clock
        runtime.apply(runtime)
        runtime.clock = None
        self.wake = runtime.command_replay.wake(runtime.history)
        history = runtime.history
        if history.stop_requested:  # "stop" would cut the rollout short: no longer that of a session left alone
            raise Interrupted
        if history.pause_requested:
            if not self._paused:
                self._phase = history.phase
            if not self._paused or self._queued:
                self._paused, self._queued = True, False
                runtime.slot.give_back()
                runtime.say_waiting("paused")
            return "pause"
        if self._paused and not runtime.slot.take():
            if not self._queued:
                self._queued = True
                runtime.say_waiting(SLOT)
            return "pause"
        if self._paused:
            self._paused = self._queued = False
            runtime.writer.event(self._phase, durable=False)
        if history.revision != self.plan.revision:
            self.reason = f"superseded by plan revision {history.revision}"
            return "supersede"
        if history.training_stop_requested:
            self.reason = "stopped early by the operator"
            return "stop"
        if sentence := over_budget(runtime):
            self.reason = sentence
            return "stop"
        return "go"
