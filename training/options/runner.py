"""The engine that training, evaluation and trials share.

A tick gives every lane its turn: the policy is asked for the lanes at a decision, the action host gets one message for
those with an open option, and every lane that has a command is stepped. Where options are, the lanes take turns in two
halves: while the host works on one, the other is stepped and decided for; a slow world's envs are all stepped at once,
and a lane of it sits out some turns while its env is reset. A lane whose option has just returned waits for its next
turn's decision, so no turn needs a second message. Where predicates, generated rewards or `available` are wanted, the
host sees every view ("services").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.host.api import FOLLOW_PLAN, Answer, Ask, Host
from rlgpt.training.options.lane import EpisodeEnd, EpisodeResult, Lane
from rlgpt.training.options.observation import Observation
from rlgpt.training.options.slots import FOLLOW, ActionSpace, Slot
from rlgpt.training.worlds.bounds import command_flaw
from rlgpt.training.worlds.optional_parts import StepsElsewhere, ending_of, is_slow, offers, reset_turns
from rlgpt.training.worlds.packed import packed_view
from rlgpt.training.worlds.protocol import NativeAction, World, WorldFailed

PLAN_ITEM = 0x8000
HALVED = 4
"""Lanes from which on they take turns in two halves."""


class Chooser(Protocol):
    def choose(self, lanes: Sequence[Lane]) -> Sequence[Sequence[int] | None]:
        """One index per head for each lane, from its observation, mask, truths and rng. None leaves the
        episode: the lane begins its next one without a further env step."""


class EpisodeListener(Protocol):
    def on_start(self, lane: Lane) -> bool:
        """Choose the lane's next episode (sets seed, episode, rng), to whose seed its env is then reset; False if none
        is left."""

    def on_reset(self, lane: Lane) -> None:
        """The lane's env has been reset: it may be put into another state of the episode."""

    def on_decision(self, lane: Lane) -> None:
        """A decision is over; the env still stands where it ended."""

    def on_end(self, lane: Lane, result: EpisodeResult) -> None: ...


class OptionRunner:
    """`observation` is None for policies that look at nothing."""

    def __init__(
        self,
        world: World,
        host: Host,
        space: ActionSpace,
        lanes: Sequence[Lane],
        chooser: Chooser,
        listener: EpisodeListener,
        *,
        observation: Observation | None = None,
        gamma: float = 1.0,
        predicates: bool = False,
        target: str = "",
        record: bool = False,
    ) -> None:
        self.world, self.host, self.space, self.lanes = world, host, space, lanes
        self.chooser, self.listener, self.observation = chooser, listener, observation
        self.gamma = gamma
        self.predicates = predicates
        self.record = record
        named = {slot.source_hash: slot.name for slot in space.slots if slot is not None}
        self._items = [named.get(item.action.source_hash, FOLLOW) for item in space.programs.plan]
        """Of the plan, as slots name them."""
        self.env_steps = 0
        self.decisions = 0
        self._target = target
        self._reset_turns = reset_turns(world)
        self._elsewhere = {lane.index: lane.env for lane in lanes if offers(lane.env, StepsElsewhere)}
        self._reward = any(lane.stream.generated is not None for lane in lanes)
        self._available = [
            (world.action_nvec[0] + index, slot.program)
            for index, slot in enumerate(space.slots)
            if slot is not None and slot.has_available
        ]
        self.services = predicates or self._reward or bool(self._available)
        self._keeps_start = predicates or bool(space.programs.plan)
        self._static = space.static_mask()
        self._primitives = space.action_nvec[0]
        self._mask_shape = (sum(space.action_nvec),)
        others = [0] * (len(space.action_nvec) - 1)
        self._noop = world.native_action([space.noop, *others])
        self._waits = space.waiting_mask()
        single = len(space.action_nvec) == 1
        self._commands = [world.native_action([a]) for a in range(self._primitives)] if single else []
        for flaw in filter(None, (command_flaw(c, world.native_action_size) for c in (self._noop, *self._commands))):
            raise WorldFailed(f"The world {world.name} cannot be played: {flaw}.")
        halved = len(lanes) >= HALVED and not is_slow(world) and (self.services or bool(space.programs.actions))
        half = len(lanes) // 2
        self._turns = [self.lanes[:half], self.lanes[half:]] if halved else [self.lanes]
        self._pending_asks: list[tuple[Lane, Ask]] = []
        """What the host works on."""
        self._moves: list[tuple[Lane, NativeAction]] = []
        """Commands of the lanes whose turn it was last, beside those that the host will give."""
        self._uninterruptible_items = [item.action.source_hash in space.uninterruptible for item in space.programs.plan]

    # ---- driving ---------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin an episode in every lane."""
        for lane in self.lanes:
            self._begin_reset(lane)
        for lane in self.lanes:
            if lane.phase == "resetting":
                self._end_reset(lane)

    def at_rest(self) -> bool:
        """Whether every lane stands at a decision (or idle) and the host owes nothing."""
        return all(self._rests(lane) for lane in self.lanes)

    def _rests(self, lane: Lane) -> bool:
        return lane.phase == "idle" or (lane.phase == "decide" and (lane.served or not self.services))

    def rest(self) -> None:
        """Finish what is open without new decisions: nothing is dropped, no generator is left."""
        while not self.at_rest():
            self.tick(deciding=False)

    def tick(self, deciding: bool = True) -> None:
        if self._reset_turns:
            self._count_turns(deciding)
        for lanes in self._turns:
            self._turn(lanes, deciding)

    def _count_turns(self, deciding: bool) -> None:
        """One turn less for the lanes that are being reset; where no other goes on, as many as the first has left."""
        resetting = [lane for lane in self.lanes if lane.phase == "resetting"]
        others = [lane for lane in self.lanes if lane.phase not in ("resetting", "idle")]
        go_on = any(deciding or not self._rests(lane) for lane in others)
        passed = 1 if go_on else min((lane.turns_left for lane in resetting), default=0)
        for lane in resetting:
            lane.turns_left -= passed
            if lane.turns_left <= 0:
                self._end_reset(lane)

    def _turn(self, lanes: Sequence[Lane], deciding: bool) -> None:
        moves: list[tuple[Lane, NativeAction]] = []
        if not self.services:  # else it is repeated once the host has seen the view
            moves += [(lane, self._command(lane)) for lane in lanes if lane.phase == "repeating"]
        if deciding:
            ready = [lane for lane in lanes if lane.phase == "decide" and (lane.served or not self.services)]
            if ready:
                self._decide(ready, moves)
        starts, asks = self._questions(lanes)
        others = self._answered()
        if starts:
            self.host.tick(starts)
        if asks:
            self.host.post([ask for _, ask in asks])
        self._pending_asks, self._moves = asks, moves
        self._step_all(others)
        if len(self._turns) == 1:
            self._step_all(self._answered())

    def _answered(self) -> list[tuple[Lane, NativeAction]]:
        """The commands of the lanes whose turn it was last."""
        asks, moves = self._pending_asks, self._moves
        self._pending_asks, self._moves = [], []
        if asks:
            for (lane, ask), answer in zip(asks, self.host.collect(), strict=True):
                self._hear(lane, ask, answer, moves)
        return moves

    def _step_all(self, moves: list[tuple[Lane, NativeAction]]) -> None:
        if self._elsewhere and len(moves) > 1:
            for lane, command in moves:
                self._elsewhere[lane.index].begin_step(command)
        for lane, command in moves:
            self._step(lane, command)

    # ---- decisions -------------------------------------------------------------------------------
    def _decide(self, ready: Sequence[Lane], moves: list[tuple[Lane, NativeAction]]) -> None:
        for lane in ready:
            self.look(lane)
        for lane, action in zip(ready, self.chooser.choose(ready), strict=True):
            if action is None:
                self._begin(lane)
                continue
            lane.action = tuple(action)
            lane.idle = False
            lane.steps, lane.reward, lane.discount, lane.weight = 0, 0.0, 1.0, 1.0
            lane.end, lane.message = "", ""
            lane.slot = lane.action[0] - self._primitives
            if lane.slot < 0:
                lane.slot = -1
                lane.phase = "settling" if self.space.primitive_steps == 1 else "repeating"
                moves.append((lane, self._command(lane)))
            else:
                lane.phase = "opening"

    def _command(self, lane: Lane) -> NativeAction:
        """Of the primitive that was chosen."""
        return self._commands[lane.action[0]] if self._commands else self.world.native_action(lane.action)

    def look(self, lane: Lane) -> None:
        """Read the lane's observation and mask as they are now."""
        if self.observation is not None:
            left = max(0.0, (lane.horizon - lane.env.steps) / lane.env.task.horizon)
            lane.observation = self.observation.read(lane.env, lane.stream, min(1.0, left))
        lane.mask = self._mask(lane)

    def _mask(self, lane: Lane) -> NDArray[np.bool_]:
        row = self.allowed(lane)
        first, follow = self.space.first, self.space.follow
        if self.space.only_in_trouble and follow >= 0 and not lane.trouble.left and row[follow]:
            row[:first] = False
            row[follow] = True
        return row

    def allowed(self, lane: Lane) -> NDArray[np.bool_]:
        """What the policy could choose in this state, were it to decide in every one."""
        legal = lane.env.action_masks()
        if getattr(legal, "shape", None) != self._mask_shape or legal.dtype != np.bool_:
            raise WorldFailed(
                f"action_masks() gave {legal!r:.60} at step {lane.env.steps} of an episode of {lane.env.task.id}; an "
                f"array of bool of the shape {self._mask_shape} was expected."
            )
        row = self._static.copy()
        count, first = self._primitives, self.space.first
        row[:count] &= legal[:count]
        row[first:] &= legal[count:]
        for index, program in self._available:
            if not lane.available >> program & 1:
                row[index] = False
        if not row[:first].any():
            row[:] = self._waits
        return row

    # ---- the host --------------------------------------------------------------------------------
    def _questions(self, lanes: Sequence[Lane]) -> tuple[list[Ask], list[tuple[Lane, Ask]]]:
        """What the host must be told first, and what it is asked."""
        questions: list[tuple[Lane, Ask]] = []
        starts: list[Ask] = []
        for lane in lanes:
            phase = lane.phase
            opens = phase == "opening"
            if opens or phase == "running" or (self.services and not lane.served and phase != "idle"):
                view_needed = not lane.served
                if lane.moved and lane.start_view is not None:
                    starts.append(Ask(lane.index, lane.start_view, episode_start=True))
                    lane.moved = lane.fresh = False
                whole = opens or lane.fresh or not lane.synced
                ask = Ask(
                    lane.index,
                    packed_view(lane.env, whole),
                    self._program(lane.slot) if opens else None,
                    phase == "running",
                    lane.fresh,
                    self.predicates and view_needed,
                    bool(self._available) and view_needed,
                    self._reward and lane.owed,
                    lane.env.steps,
                )
                questions.append((lane, ask))
        return starts, questions

    def _program(self, slot: int) -> int:
        chosen = self.space.slots[slot]
        if chosen is None:
            raise ValueError(f"slot {slot} is empty but was chosen")
        return chosen.program

    def _hear(self, lane: Lane, ask: Ask, answer: Answer, moves: list[tuple[Lane, NativeAction]]) -> None:
        lane.served, lane.fresh = True, False
        if ask.predicates:
            lane.truths = answer.predicates
            if new := answer.predicates & ~lane.truths_ever:
                lane.truths_ever |= new
                lane.true_since.update((bit, lane.env.steps) for bit in range(new.bit_length()) if new >> bit & 1)
        if ask.available:
            lane.available = answer.available
        if ask.reward:
            lane.owed = False
            value = lane.stream.add_generated(answer.reward, lane.env.steps)
            lane.reward += lane.weight * value
            lane.total += value
        if lane.phase == "settling":
            self._settle(lane)
        elif lane.phase == "repeating":
            moves.append((lane, self._command(lane)))
        elif lane.phase == "opening":
            lane.running, lane.line = answer.action, answer.line
            if answer.command is None:
                self._fault(lane, answer)
                lane.phase, lane.idle = "settling", True
                moves.append((lane, self._noop))
            else:
                lane.phase = "running"
                moves.append((lane, answer.command))
        elif lane.phase == "running":
            if lane.truths & lane.until:
                lane.end = "return"
                self._settle(lane)
            elif answer.command is None:
                self._fault(lane, answer)
                self._settle(lane)
            else:
                lane.running, lane.line = answer.action, answer.line
                moves.append((lane, answer.command))

    def _fault(self, lane: Lane, answer: Answer) -> None:
        lane.end, lane.message = answer.end or "return", answer.message
        if answer.end == "quarantined":
            self._static[self._primitives + lane.slot] = False

    # ---- the world -------------------------------------------------------------------------------
    def _step(self, lane: Lane, command: NativeAction) -> None:
        env = lane.env
        result = env.step(command)
        self.env_steps += 1
        novelty = env.novelty()
        news = novelty != lane.novelty
        lane.novelty = novelty
        lane.outcome = self._outcome(lane, result.terminated, result.truncated)
        news = news or lane.outcome != ""
        reward = lane.stream.step(env, result.reward, lane.outcome == "success", news)
        lane.total += reward
        lane.reward += lane.discount * reward
        lane.weight = lane.discount
        lane.discount *= self.gamma
        lane.steps += 1
        lane.watch.step(env.progress_key(), novelty, env.waiting())
        if lane.commands is not None:
            lane.commands.append(command)
        if lane.trace is not None:
            lane.trace.step(lane, command)
        if lane.film is not None:
            lane.film.step(lane, command)
        lane.synced, lane.served, lane.owed = lane.served, False, True
        if lane.phase == "running":
            slot = self.space.slots[lane.slot]
            assert slot is not None
            if lane.outcome:
                lane.end = lane.outcome
            elif env.interrupt() and not self._is_uninterruptible(slot, lane.running):
                lane.end = "alarm"
            elif lane.steps >= slot.max_option_steps:
                lane.end = "cap"
            else:
                return
            lane.phase = "settling"
        elif lane.phase == "repeating":
            if not lane.outcome and not env.interrupt() and lane.steps < self.space.primitive_steps:
                return
            lane.phase = "settling"
        if not self.services:
            self._settle(lane)

    def _is_uninterruptible(self, slot: Slot, running: int) -> bool:
        """Whether an interrupt does not end the code that runs; under follow_plan the code of the item decides."""
        if slot.program == FOLLOW_PLAN and running >= PLAN_ITEM:
            return self._uninterruptible_items[running - PLAN_ITEM]
        return slot.source_hash in self.space.uninterruptible

    def _outcome(self, lane: Lane, terminated: bool, truncated: bool) -> EpisodeEnd:
        env = lane.env
        if self._target and self._target in env.milestones():
            return "success"
        if terminated:
            if env.succeeded():
                return "success"
            return "time" if env.steps >= lane.horizon and not ending_of(env).cause else "death"
        if env.steps >= lane.horizon:
            whole = env.steps >= env.task.horizon  # a training may have a shorter horizon
            return "success" if env.task.kind == "survive" and whole else "time"
        return "truncated" if truncated else ""

    # ---- ends ------------------------------------------------------------------------------------
    def _settle(self, lane: Lane) -> None:
        self.decisions += 1
        lane.decisions += 1
        name = "primitive"
        if lane.slot >= 0:
            slot = self.space.slots[lane.slot]
            assert slot is not None
            name = slot.name
            ends = lane.ends.setdefault(name, {})
            ends[lane.end] = ends.get(lane.end, 0) + 1
            runs_plan = slot.program == FOLLOW_PLAN and lane.running >= PLAN_ITEM
            lane.last = (self._items[lane.running - PLAN_ITEM] if runs_plan else name).partition("(")[0]
        lane.usage[name] = lane.usage.get(name, 0) + 1
        lane.phase = "decide"
        lane.trouble.decided(lane.end, lane.novelty)
        self.listener.on_decision(lane)
        if lane.outcome:
            self.listener.on_end(lane, self._result(lane))
            self._begin(lane)

    def _result(self, lane: Lane) -> EpisodeResult:
        env = lane.env
        ending = ending_of(env)
        commands = None if lane.commands is None else np.array(lane.commands, "<i2").tobytes()
        return EpisodeResult(
            index=lane.episode,
            seed=lane.seed,
            success=lane.outcome == "success",
            return_=lane.total,
            env_steps=env.steps,
            decisions=lane.decisions,
            dead_loop=lane.watch.dead(lane.outcome == "time"),
            end=lane.outcome,
            milestones=tuple(sorted(env.milestones())),
            rewards=lane.stream.by_name(),
            usage=lane.usage,
            ends=lane.ends,
            truths=lane.truths_ever,
            true_since=lane.true_since,
            cause=ending.cause if lane.outcome == "death" else "",
            vitals=ending.vitals,
            last=lane.last,
            commands=commands,
        )

    def _begin(self, lane: Lane) -> None:
        """The lane's next episode, or the reset that comes before it."""
        self._begin_reset(lane)
        if lane.phase == "resetting" and not self._reset_turns:
            self._end_reset(lane)

    def _begin_reset(self, lane: Lane) -> None:
        lane.outcome = ""
        lane.until, lane.running = 0, -1
        lane.start_view, lane.moved, lane.owed = None, False, False
        if not self.listener.on_start(lane):
            lane.phase = "idle"
            return
        lane.phase, lane.turns_left = "resetting", self._reset_turns
        if lane.index in self._elsewhere:
            self._elsewhere[lane.index].begin_reset(lane.seed)

    def _end_reset(self, lane: Lane) -> None:
        lane.env.reset(lane.seed)
        self.listener.on_reset(lane)
        lane.phase = "decide"
        lane.decisions, lane.total, lane.truths_ever, lane.truths, lane.available = 0, 0.0, 0, 0, -1
        lane.usage, lane.ends, lane.true_since, lane.last = {}, {}, {}, ""
        if lane.film is not None:
            lane.film.start(lane.env)
        lane.commands = [] if self.record else None
        lane.fresh, lane.served, lane.synced = True, False, False
        lane.stream.start(lane.env)
        lane.novelty = lane.env.novelty()
        lane.watch.start(lane.novelty)
        lane.trouble.start(lane.novelty)
        if lane.trace is not None:
            lane.trace.start(lane.env)
        if self._keeps_start and not lane.moved:
            lane.start_view = packed_view(lane.env, True)
