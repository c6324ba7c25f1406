"""Trials: does a coded sub-action do what it says, from states in which the plan needs it?

method.md, "Trials". A trial resets a trial seed, executes the accepted sub-actions before the item until each
one's done_when holds, and then calls the item until its own done_when holds or its env steps are spent. No
state is ever made by other means. A start state in which its done_when holds already does not need the item and
says nothing about its code; when nearly all are such, the predicate is vacuous. Neither does a trial that the world
broke off (`truncated`, such as a lost game): another prefix is executed in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rlgpt.agents.contracts import RewardTerm
from rlgpt.training.host.api import Action, Host, Programs
from rlgpt.training.options.dead_loops import DeadLoopWatch
from rlgpt.training.options.film import Camera, Film, FrameSnapshot, Reels
from rlgpt.training.options.lane import EpisodeResult, Lane
from rlgpt.training.options.observation import make_env
from rlgpt.training.options.observer import Observer, Signal, obey
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.options.runner import Chooser, OptionRunner
from rlgpt.training.options.slots import ActionSpace, Slot, noop_of, primitive_names
from rlgpt.training.rollouts.evidence import Describer
from rlgpt.training.rollouts.partial_trial import PartialTrial
from rlgpt.training.rollouts.trace import Shower, Trace
from rlgpt.training.rollouts.trial_result import (
    MIN_TRIALS,
    TRUNCATED,
    FinishedTrial,
    TrialEpisode,
    TrialOutcome,
    TrialResult,
    gather_evidence,
    judge_trials,
)
from rlgpt.training.worlds.optional_parts import ending_of, side_by_side
from rlgpt.training.worlds.packed import packed_view
from rlgpt.training.worlds.protocol import World

if TYPE_CHECKING:
    from rlgpt.training.ppo.trained import TrainedPolicy

INITIAL_TRIALS = 5
"""Trials after which most versions are accepted or failed."""
MAX_TRIALS = 10
"""Trials where the first ones leave it open."""
MAX_SEEDS = 20
"""Seeds from which the steps before the item are executed, at most, to find a state in which it is needed."""
MAX_SEEDS_AFFORDABLE = 60
"""The same where the env steps of more are no matter: late in a long chain few prefixes get to the item."""
IDLE_CALLS = 5
"""Calls in a row that return without acting, after which a trial is over."""
STEP_MS = 20.0
"""CPU time per env step of the item above which it fails, in milliseconds. Far above what code can take that keeps to
its budget of loop rounds (2 ms), so that no slow or busy machine turns a verdict: above it come only calls that work
on much data at once (`sum` of a million numbers), which that budget counts as one."""
FAULTS = ("error", "bad_yield", "budget", "killed", "quarantined")


@dataclass(frozen=True)
class PrefixItem:
    """A sub-action before the one on trial. `action` None: the incumbent policy acts (mode `rl`)."""

    done_when: str
    action: Action | None
    name: str = ""


def try_item(
    world: World,
    task: str,
    *,
    prefix: Sequence[PrefixItem],
    action: Action,
    done_when: str,
    sources: Mapping[str, str],
    host: Host,
    seeds: Sequence[int],
    max_steps: int,
    uninterruptible: frozenset[str] = frozenset(),
    incumbent: TrainedPolicy | None = None,
    observer: Observer | None = None,
    partial: PartialTrial | None = None,
    step_ms: float = STEP_MS,
    name: str = "the sub-action",
    trigger: str = "",
    affordable: int = 0,
) -> TrialResult:
    """Try `action` from 5 states in which the prefix leaves it needed, and from 5 more when the first leave it open.

    Each of `seeds` is one prefix. 20 of them are used at most, and 60 as long as the trial has taken fewer than
    `affordable` env steps. With fewer than 3 such states the item is `unreached`, or its predicate `vacuous` when it
    held already in most of those that the prefix reached.

    `trigger` of a guard: it is tried from where the prefix is when that comes true.

    `sources` by hash for prefix and action; `uninterruptible`: hashes of sources that an interrupt does not end.
    `incumbent` executes prefix items of mode rl. Raises ValueError when such an item has none.
    Code that takes more than `step_ms` of CPU time per env step has failed, whatever it achieved.
    `partial` keeps what is finished, batch by batch, and gives it back to a worker that begins again.
    """
    if incumbent is None and any(item.action is None for item in prefix):
        raise ValueError("A sub-action before this one is learnt, and there is no trained policy yet to execute it.")
    runner = _TrialRunner(
        world, task, prefix, action, done_when, sources, host, max_steps, uninterruptible, incumbent,
        observer or Observer(), partial, step_ms, name, trigger, affordable,
    )  # fmt: skip
    return runner.run(seeds[:MAX_SEEDS_AFFORDABLE])


@dataclass
class _TrialProgress:
    """What a lane's trial has come to."""

    seed: int
    stage: Literal["prefix", "item", "over"]
    item_from: int = 0
    before: bytes = b""
    yielded_from: int = 0
    idle: int = 0
    arrived: bool = False


class _TrialRunner:
    """Chooser and listener of the runner that runs the trials."""

    def __init__(
        self, world: World, task: str, prefix: Sequence[PrefixItem], action: Action, done_when: str,
        sources: Mapping[str, str], host: Host, max_steps: int, uninterruptible: frozenset[str],
        incumbent: TrainedPolicy | None, observer: Observer, partial: PartialTrial | None, step_ms: float,
        name: str, trigger: str, affordable: int,
    ) -> None:  # fmt: skip
        self.world, self.task, self.prefix, self.host = world, world.tasks[task], prefix, host
        self.max_steps, self.observer, self.partial, self.affordable = max_steps, observer, partial, affordable
        self.incumbent, self.step_ms = incumbent, step_ms
        self._seconds, self._item_steps = 0.0, 0
        own = incumbent.space if incumbent else ActionSpace(
            world.action_nvec, noop_of(world), np.zeros(world.action_nvec[0], np.bool_), ()
        )  # fmt: skip
        self._own_slots = len(own.slots)
        items = [*(item.action for item in prefix), action]
        base = own.programs
        actions = list(base.actions)
        slots: list[Slot | None] = list(own.slots)
        for index, chosen in enumerate(items):
            bound = chosen or action
            slots.append(
                Slot(
                    f"item_{index}",
                    (prefix[index].name or f"item_{index}") if index < len(prefix) else name,
                    bound.source_hash,
                    len(actions),
                    bound.arguments,
                    max_steps,
                )
            )
            actions.append(bound)
        needed = {bound.source_hash for bound in items if bound is not None}
        programs = Programs(
            dict(base.sources) | {key: sources[key] for key in sorted(needed)}, tuple(actions), base.plan,
            (*(item.done_when for item in prefix), done_when, *filter(None, (trigger,))), base.rewards, lines=True,
        )  # fmt: skip
        uninterruptible_hashes = own.uninterruptible | uninterruptible
        self.space = replace(own, slots=tuple(slots), programs=programs, uninterruptible=uninterruptible_hashes)
        self._chooser: Chooser | None = incumbent.chooser(own, False) if incumbent else None
        self._bit = len(prefix)
        self._trigger = 1 << len(prefix) + 1 if trigger else 0
        """Bit of the predicate that makes a guard run."""
        self._shower = Shower(world, programs.sources)
        self._names = primitive_names(world)
        self._queue: list[int] = []
        self._finished_trials: list[FinishedTrial] = []
        self._camera = Camera(world, self.space) if observer.films else None
        self._reels = Reels()
        self.env_steps = 0

    # ---- the course of a trial -------------------------------------------------------------------
    def run(self, seeds: Sequence[int]) -> TrialResult:
        self._seeds = seeds
        self._go_on()
        signal = self._until(INITIAL_TRIALS, seeds)
        needed = sum(t.episode.needed for t in self._finished_trials)
        if signal == "go" and needed >= MIN_TRIALS:
            wins = sum(t.episode.won for t in self._finished_trials)
            if 2 <= wins < needed or wins == needed < INITIAL_TRIALS:
                signal = self._until(MAX_TRIALS, seeds)
        return self._result(stopped=signal != "go")

    def _until(self, arrivals: int, seeds: Sequence[int]) -> Signal:
        """Execute further prefixes, in batches, until so many needed the item or no more seeds may be used."""
        signal: Signal = "go"
        while signal == "go" and (tried := len(self._finished_trials)) < self._allowed(len(seeds)):
            missing = arrivals - sum(t.episode.needed for t in self._finished_trials)
            if missing <= 0:
                break
            last = MAX_SEEDS if tried < MAX_SEEDS else len(seeds)
            signal = self._batch(seeds[tried : min(tried + missing, last)])
            if signal == "go" and self.partial is not None:
                self.partial.save(self._pack_finished_trials())
        return signal

    def _allowed(self, seeds: int) -> int:
        return seeds if self.env_steps < self.affordable else min(seeds, MAX_SEEDS)

    def _pack_finished_trials(self) -> dict[str, Any]:
        return {
            "env_steps": self.env_steps,
            "computing": [self._seconds, self._item_steps],
            "done": [[vars(t.episode), t.before, t.after, t.yields, t.lost] for t in self._finished_trials],
            "reels": self._reels.save(),
        }

    def _go_on(self) -> None:
        """From what an earlier worker had finished of this very trial."""
        if self.partial is not None and (state := self.partial.load()):
            self.env_steps = state["env_steps"]
            self._seconds, self._item_steps = state.get("computing", (0.0, 0))
            self._finished_trials = [
                FinishedTrial(TrialEpisode(**of), before, after, yields, *(lost or (None,)))
                for of, before, after, yields, *lost in state["done"]
            ]
            self._reels.load(state["reels"])

    def _batch(self, seeds: Sequence[int]) -> Signal:
        if not seeds:
            return "go"
        self._queue = list(seeds)
        terms = self.incumbent.terms if self.incumbent else (RewardTerm(term="task", weight=1.0),)
        layout = self.incumbent.observation if self.incumbent else None
        horizon = self.task.horizon
        lanes = [
            Lane(
                index,
                make_env(self.world, self.task.id, layout) if layout else self.world.make(self.task.id),
                RewardStream(terms, self.world), DeadLoopWatch(horizon), horizon,
            )
            for index in range(side_by_side(self.world, len(seeds)))
        ]  # fmt: skip
        self.host.load(self.space.programs)
        runner = OptionRunner(
            self.world, self.host, self.space, lanes, self, self,
            observation=layout, predicates=True, record=True,
        )  # fmt: skip
        runner.start()
        signal: Signal = "go"
        while any(lane.phase != "idle" for lane in lanes) and signal == "go":
            self._measured(runner)
            signal = obey(self.observer)
        for lane in lanes:
            lane.env.close()
        order = {seed: place for place, seed in enumerate(seeds)}
        self._finished_trials.sort(key=lambda trial: order.get(trial.episode.seed, -1))
        return signal

    def _measured(self, runner: OptionRunner) -> None:
        """A tick, and the CPU time that the host spends on it where the item is at work in some lane."""
        going = [lane for lane in runner.lanes if lane.phase != "idle"]
        at_work = [(lane, lane.env.steps) for lane in going if lane.note.stage == "item"]
        before = self.host.cpu_seconds()
        runner.tick()
        if at_work:
            self._seconds += max(0.0, self.host.cpu_seconds() - before)
            self._item_steps += sum(max(0, lane.env.steps - steps) for lane, steps in at_work)

    # ---- listener ------------------------------------------------------------------------------------
    def on_start(self, lane: Lane) -> bool:
        if not self._queue:
            return False
        seed = self._queue.pop(0)
        lane.seed, lane.episode, lane.horizon = seed, seed, self.task.horizon
        lane.rng = np.random.default_rng((seed, 3))
        lane.note = _TrialProgress(seed, "prefix")
        lane.trace = Trace(self.space, ())
        lane.film = Film(self._camera, seed) if self._camera else None
        return True

    def on_reset(self, lane: Lane) -> None:
        pass

    def on_decision(self, lane: Lane) -> None:
        pass

    def on_end(self, lane: Lane, result: EpisodeResult) -> None:
        if lane.note.stage == "prefix":
            self._close(lane, TRUNCATED if result.end == TRUNCATED else "prefix", False)
        elif lane.note.stage == "item":
            won = result.success and self.task.kind == "goal"  # the episode ends with the task: nothing is left to do
            done = won or bool(lane.truths >> self._bit & 1)
            end = result.end if result.end in ("death", TRUNCATED) else "time"
            self._close(lane, "done" if done else end, done, result.cause)

    # ---- chooser ---------------------------------------------------------------------------------
    def choose(self, lanes: Sequence[Lane]) -> list[tuple[int, ...] | None]:
        return [self._next(lane) for lane in lanes]

    def _next(self, lane: Lane) -> tuple[int, ...] | None:
        note: _TrialProgress = lane.note
        if note.stage == "prefix":
            if not lane.truths & self._trigger:
                for index, item in enumerate(self.prefix):
                    if not lane.truths >> index & 1:
                        lane.until = 1 << index | self._trigger
                        return self._call(index) if item.action is not None else self._ask_incumbent(lane)
                if self._trigger:  # nothing is left to do: wait for it
                    lane.until = 0
                    return (self.space.noop, *[0] * (len(self.space.action_nvec) - 1))
            self._arrive(lane)
        if lane.truths >> self._bit & 1:
            already = lane.env.steps == note.item_from
            self._close(lane, "already done" if already else "done", not already)
            return None
        if lane.env.steps > note.item_from:
            if lane.end in FAULTS:
                self._close(lane, lane.end, False)
                return None
            note.idle = note.idle + 1 if lane.end == "return" and lane.idle else 0
            if note.idle >= IDLE_CALLS:
                self._close(lane, "idle", False)
                return None
        lane.until = 1 << self._bit
        return self._call(len(self.prefix))

    def _call(self, index: int) -> tuple[int, ...]:
        return (self.space.action_nvec[0] + self._own_slots + index, *[0] * (len(self.space.action_nvec) - 1))

    def _ask_incumbent(self, lane: Lane) -> tuple[int, ...] | None:
        assert self._chooser is not None and lane.mask is not None
        whole = lane.mask
        edge = self.space.action_nvec[0] + self._own_slots
        lane.mask = np.concatenate([whole[:edge], whole[self.space.first :]])
        (chosen,) = self._chooser.choose([lane])
        lane.mask = whole
        return None if chosen is None else tuple(chosen)

    def _arrive(self, lane: Lane) -> None:
        note: _TrialProgress = lane.note
        note.stage, note.arrived, note.item_from = "item", True, lane.env.steps
        note.before = packed_view(lane.env, True)
        assert lane.trace is not None
        lane.trace.start(lane.env)
        note.yielded_from = len(lane.commands or ())
        lane.end = ""
        lane.horizon = min(self.task.horizon, lane.env.steps + self.max_steps)

    def _close(self, lane: Lane, end: str, done: bool, cause: str = "") -> None:
        note: _TrialProgress = lane.note
        note.stage = "over"
        self.env_steps += lane.env.steps
        steps = lane.env.steps - note.item_from if note.arrived else 0
        message = lane.message if end in FAULTS or end == "prefix" else ""
        episode = TrialEpisode(note.seed, note.arrived, end == "already done", done, steps, end, message, cause)
        commands = (lane.commands or [])[note.yielded_from :]
        names = [self._names.get(command, str(command)) for command in commands]
        lost = self._lost(lane, episode) if episode.needed and not done else None
        self._finished_trials.append(FinishedTrial(episode, note.before, packed_view(lane.env, True), names, lost))
        if isinstance(lane.film, Film):
            self._reels.add(episode.kind, self._seeds.index(note.seed), lane.film.end(lane.total))

    def _lost(self, lane: Lane, episode: TrialEpisode) -> dict[str, Any]:
        assert isinstance(lane.trace, Trace)
        lane.trace.end(lane.env)
        brief = {
            "seed": episode.seed, "end": episode.end, "cause": episode.cause, "steps": episode.env_steps,
            "vitals": dict(ending_of(lane.env).vitals), "message": episode.message,
        }  # fmt: skip
        return brief | self._shower.shown(lane.trace)

    def _result(self, stopped: bool) -> TrialResult:
        episodes = [trial.episode for trial in self._finished_trials]
        ms_per_step = self._seconds * 1000 / self._item_steps if self._item_steps else 0.0
        outcome: TrialOutcome = "stopped"
        error = "the trial was stopped"
        if not stopped:
            outcome, error = judge_trials(episodes, ms_per_step, self.step_ms, bool(self._trigger))
        return TrialResult(
            outcome, sum(e.needed for e in episodes), sum(e.won for e in episodes), len(episodes), self.env_steps,
            error, [vars(e) | {} for e in episodes], gather_evidence(self._finished_trials, Describer(self.world)),
            [t.before for t in self._finished_trials if t.before], self._films(),
        )  # fmt: skip

    def _films(self) -> list[FrameSnapshot]:
        for failing in ("failed", "not reached"):
            if self._reels.of(failing):
                return self._reels.of("won", failing)
        return self._reels.of("won") or self._reels.of("not needed")
