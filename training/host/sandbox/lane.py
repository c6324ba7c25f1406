"""One lane of a host: the views of one env, its open call, and the evaluation of sources on them.

Each method that evaluates a source first writes its token to the shared page and refills the meter, and turns whatever
the source raises into an end code and a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from types import GeneratorType
from typing import Any, NamedTuple
from zlib import crc32

from rlgpt.training.host import wire
from rlgpt.training.host.sandbox.program import Program
from rlgpt.training.host.sandbox.runtime import STEADY_TICKS, TICKS, Meter, OutOfTicks, Rng, is_plain, line_of, sentence
from rlgpt.training.host.wire import AnswerCodec

STEPS_CAP = 1_000
"""Env steps of one call at most; the caller may have a lower cap."""

YIELDED, RETURNED, ERROR, BAD_YIELD, BUDGET, KILLED, QUARANTINED = range(7)
"""Indices into `wire.ENDS`."""
OUTCOMES_CAP = 256
OUT_OF_TICKS = (
    f"too much work without a yield: at most {TICKS:,} loop rounds and calls at once and {STEADY_TICKS:,} per env step "
    "(about 2 ms) in the long run; loop less, or yield between the parts"
)


class LoadedAction:
    """A coded action with its arguments bound."""

    __slots__ = ("arguments", "disabled", "program")

    def __init__(self, program: Program, arguments: Mapping[str, object]) -> None:
        self.program = program
        self.arguments = arguments
        self.disabled = ""
        """Why it is not run; empty if it is run."""


class Test:
    """A predicate or a generated reward."""

    __slots__ = ("disabled", "program")

    def __init__(self, program: Program) -> None:
        self.program = program
        self.disabled = ""
        """Why it is not run; empty if it is run."""


class Item(NamedTuple):
    test: Test
    trigger: Test | None
    """The trigger of a guard; None for a step of the sequence."""
    slot: LoadedAction


class Loaded(NamedTuple):
    """Everything a host may run; indices as in `Programs`."""

    slots: Sequence[LoadedAction] = ()
    plan: Sequence[Item] = ()
    predicates: Sequence[Test] = ()
    rewards: Sequence[Test] = ()
    lines: bool = False


class Call:
    """An open call of a coded action: a generator that is resumed with each view."""

    __slots__ = ("action", "generator", "outcomes", "rng", "slot", "steps", "ticks", "token")

    def __init__(
        self,
        generator: Generator[object, object, object],
        slot: LoadedAction,
        action: int,
        token: bytes,
        rng: Rng | None,
        outcomes: dict[object, CallResult],
    ) -> None:
        self.generator = generator
        self.slot = slot
        self.action = action
        """As in an answer: the index of the action, with `PLAN_BIT` for one of the plan."""
        self.token = token
        self.rng = rng
        self.outcomes = outcomes
        """Yielded text or integer (with its line, where lines are reported) -> its result, so that equal yields are
        encoded once."""
        self.steps = 0
        self.ticks = TICKS
        """Budget until its next yield."""


class CallResult(NamedTuple):
    """The result of resuming a call."""

    command: tuple[int, ...] | None
    end: int
    message: str
    action: int
    record: bytes
    """The record of an answer that has this result and nothing else."""
    line: int = 0
    """Line of the yield, where lines are reported, else 0."""


class HostLane:
    def __init__(self, index: int, seed: int, world: Any, meter: Meter, page: Any) -> None:
        self.index = index
        self.seed = seed
        self.world = world
        self.page = page
        self.refill: Callable[..., None] = meter.refill
        self.remaining: Callable[[], int] = meter.remaining
        self.encode: Callable[[object], tuple[int, ...]] = world.encode
        self.decode: Callable[[bytes], object] = world.decoder().view
        self.decoding = self.token(wire.DECODES, 0)
        self.loaded = Loaded()
        self.codec: AnswerCodec[Any] = AnswerCodec(tuple, world.NATIVE_ACTION_SIZE, 0, 0, 0)
        self.view: object = None
        self.before: object = None
        self.start: object = None
        self.call: Call | None = None
        self.outcomes: dict[int, dict[object, CallResult]] = {}
        self.following = False
        self.spent_guards: set[int] = set()
        """Guards of the plan that returned without an env step in this call since their trigger last became true."""
        self.notes: list[str] = []

    def token(self, what: int, index: int) -> bytes:
        return wire.TOKEN.pack(self.index, what, index)

    def load(self, loaded: Loaded, codec: AnswerCodec[Any]) -> None:
        """Replace what is loaded. The open call is dropped; the views of the episode stay."""
        self.drop()
        self.loaded = loaded
        self.codec = codec
        self.outcomes = {}

    def see(self, packed: bytes, flags: int) -> None:
        if flags & wire.START:
            self.drop()
        self.page[0:8] = self.decoding
        if flags & wire.START:
            self.before = None
            # A decoder of its own, because `start` must not see later changes of the map memory.
            self.start = self.world.decoder().view(packed)
        else:
            self.before = self.view
        if flags & wire.WHOLE:
            self.decode = self.world.decoder().view
        self.view = self.decode(packed)

    def advance(self, flags: int, index: int, step: int, packed: bytes) -> CallResult:
        """Open a call or resume the open one, as the flags say."""
        if flags & wire.OPEN:
            self.drop()
            self.spent_guards.clear()  # as after a rebuild, which sends the views since a call was opened
            if index == wire.FOLLOW_PLAN:
                self.following = True
                return self._follow_plan(step, packed)
            slot = self.loaded.slots[index]
            return self._open_call(slot, self.token(wire.RUNS_ACTION, index), index, step, packed)
        if self.following:
            return self._follow_plan(step, packed)
        if self.call is None:
            return self._end_call(RETURNED, "no call is open", wire.NO_ACTION)
        return self._run(self.call, self.view)

    def resume(self, call: Call, packed: bytes) -> CallResult:
        """`see` and `advance` in one, for resuming an open call, which nearly every ask is."""
        self.page[0:8] = call.token
        self.before = self.view
        self.view = view = self.decode(packed)
        return self._resume_call(call, view)

    def drop(self) -> None:
        """Close the open call, with its own token on the page."""
        call, self.call, self.following = self.call, None, False
        if call is not None:
            self._close(call)

    def _close(self, call: Call) -> None:
        self.page[0:8] = call.token
        self.refill()
        try:
            call.generator.close()
        except (OutOfTicks, Exception) as error:
            self.notes.append(f"while it was closed: {sentence(error)}")

    def _open_call(self, slot: LoadedAction, token: bytes, action: int, step: int, packed: bytes) -> CallResult:
        """Open a call and run it to its first yield."""
        if slot.disabled:
            return self._end_call(QUARANTINED, f"this source is disabled: {slot.disabled}", action)
        self.page[0:8] = token
        rng = Rng(self.seed, step, crc32(packed)) if slot.program.checked.uses_rng else None
        outcomes = self.outcomes.setdefault(action, {})
        try:
            generator = slot.program.open(self.view, slot.arguments)
        except TypeError as error:  # the source has given the name of its action to something else
            return self._end_call(ERROR, sentence(error), action)
        self.call = Call(generator, slot, action, token, rng, outcomes)
        return self._resume_call(self.call, None)

    def _end_call(self, end: int, message: str, action: int) -> CallResult:
        """End the open call, if any, and return its last result."""
        self.call = None
        message = message[: wire.TEXT_CAP // 4]
        record = self.codec.bare(self.index, None, end, action, len(message.encode("utf-8", "replace")))
        return CallResult(None, end, message, action, record)

    def _run(self, call: Call, value: object) -> CallResult:
        """Write the call's token to the page and resume it."""
        self.page[0:8] = call.token
        return self._resume_call(call, value)

    def _resume_call(self, call: Call, value: object) -> CallResult:
        """Resume a call with `value` until it yields or ends."""
        self.refill(call.ticks)
        if call.rng is not None:
            call.slot.program.namespace["rng"] = call.rng
        try:
            yielded = call.generator.send(value)
        except StopIteration:
            return self._end_call(RETURNED, "", call.action)
        except OutOfTicks as error:
            return self._end_call(BUDGET, f"line {line_of(error)}: {OUT_OF_TICKS}", call.action)
        except MemoryError:
            raise
        except Exception as error:
            return self._end_call(ERROR, sentence(error), call.action)
        call.steps += 1
        call.ticks = min(TICKS, self.remaining() + STEADY_TICKS)
        if call.steps > STEPS_CAP:
            self._close(call)
            return self._end_call(BUDGET, f"a call takes at most {STEPS_CAP} env steps", call.action)
        # Only these two types are cached: 1, True and 1.0 are equal as keys, but not all of them are valid commands.
        is_cacheable = type(yielded) is str or type(yielded) is int
        key = (yielded, _line(call.generator)) if self.loaded.lines else yielded
        outcome = call.outcomes.get(key) if is_cacheable else None
        if outcome is None:
            outcome = self._encode_yield(call, yielded)
            if is_cacheable and outcome.command is not None and len(call.outcomes) < OUTCOMES_CAP:
                call.outcomes[key] = outcome
        return outcome

    def _encode_yield(self, call: Call, yielded: object) -> CallResult:
        """The world's command for the yielded value, or the end of the call if it is no valid command."""
        line = _line(call.generator)
        try:
            if not is_plain(yielded):
                if isinstance(yielded, GeneratorType):
                    raise ValueError("this is several env steps: write `view = yield from ...`, not `view = yield ...`")
                raise ValueError(f"yield a primitive, not a {type(yielded).__name__}")
            command = self.encode(yielded)
            reported_line = line if self.loaded.lines else 0
            record = self.codec.bare(self.index, command, YIELDED, call.action, 0, reported_line)
            return CallResult(command, YIELDED, "", call.action, record, reported_line)
        except ValueError as error:
            message = str(error)
        except Exception as error:
            message = sentence(error)
        self._close(call)
        return self._end_call(BAD_YIELD, f"line {line}: {message}", call.action)

    def _follow_plan(self, step: int, packed: bytes) -> CallResult:
        """Run the first guard whose trigger holds, else the first step that is not done. A running item continues until
        it returns, is done, or is preempted by a guard."""
        plan = self.loaded.plan
        call, self.call = self.call, None
        if call is not None:
            index = call.action & ~wire.PLAN_BIT
            if self._holds(plan[index].test, wire.RUNS_PLAN_TEST, index) or self._is_preempted(plan, index):
                self._close(call)
            else:
                self.call = call
                outcome = self._run(call, self.view)
                if outcome.end != RETURNED:
                    self.following = outcome.end == YIELDED
                    return outcome
        outcome = self._start_next_item(plan, step, packed)
        self.following = outcome.end == YIELDED
        return outcome

    def _start_next_item(self, plan: Sequence[Item], step: int, packed: bytes) -> CallResult:
        """Open one item of the plan after the other, guards first, until one takes an env step."""
        returned: set[int] = set()
        while True:
            index = self._find_next_item(plan)
            if index < 0:
                return self._end_call(RETURNED, "every sub-action of the plan is done", wire.NO_ACTION)
            action = wire.PLAN_BIT | index
            if index in returned:  # a step of the sequence; a guard that returned is not found again
                reason = f"sub-action {index + 1} returned without an env step and is not done"
                return self._end_call(RETURNED, reason, action)
            token = self.token(wire.RUNS_PLAN_ACTION, index)
            outcome = self._open_call(plan[index].slot, token, action, step, packed)
            if outcome.end != RETURNED:
                return outcome
            if plan[index].trigger is not None:
                self.spent_guards.add(index)
            else:
                returned.add(index)

    def _find_next_item(self, plan: Sequence[Item]) -> int:
        guard = self._find_guard(plan)
        if guard >= 0:
            return guard
        for index, item in enumerate(plan):
            if item.trigger is None and not self._holds(item.test, wire.RUNS_PLAN_TEST, index):
                return index
        return -1

    def _find_guard(self, plan: Sequence[Item]) -> int:
        """Index of the first guard whose trigger holds, -1 if none. A guard that returned without an env step is left
        out until its trigger has been false again, because it would block the plan."""
        for index, item in enumerate(plan):
            if item.trigger is None:
                continue
            if not self._holds(item.trigger, wire.RUNS_PLAN_TEST, wire.TRIGGER_BIT | index):
                self.spent_guards.discard(index)
            elif index not in self.spent_guards:
                return index
        return -1

    def _is_preempted(self, plan: Sequence[Item], running: int) -> bool:
        """Whether a guard interrupts the running item: any guard a step, an earlier guard a guard."""
        guard = self._find_guard(plan)
        return guard >= 0 and (plan[running].trigger is None or guard < running)

    def _holds(self, test: Test, what: int, index: int) -> bool:
        """Whether a predicate holds; False, with a note, when it raises."""
        if test.disabled:
            return False
        self.page[0:8] = self.token(what, index)
        self.refill()
        try:
            return test.program.holds(self.start, self.view)
        except MemoryError:
            raise
        except (OutOfTicks, Exception) as error:
            self.notes.append(f"done_when {index}: {sentence(error)}")
            return False

    def predicates(self) -> int:
        """Bit i: predicate i holds."""
        truths = 0
        for index, test in enumerate(self.loaded.predicates):
            if self._holds(test, wire.RUNS_PREDICATE, index):
                truths |= 1 << index
        return truths

    def available(self, step: int, packed: bytes) -> int:
        """Bit i: action i may start in this view. `available` draws the random numbers that a call would draw if it
        were opened now, so the result does not depend on the lane."""
        mask = 0
        for index, slot in enumerate(self.loaded.slots):
            if slot.disabled:
                continue
            if slot.program.may_start is None:
                mask |= 1 << index
                continue
            self.page[0:8] = self.token(wire.RUNS_AVAILABLE, index)
            self.refill()
            slot.program.namespace["rng"] = Rng(self.seed, step, crc32(packed))
            try:
                if slot.program.available(self.view, slot.arguments):
                    mask |= 1 << index
            except MemoryError:
                raise
            except (OutOfTicks, Exception) as error:
                self.notes.append(f"available of action {index}: {sentence(error)}")
        return mask

    def reward(self) -> float:
        """Sum of the generated rewards for the step from the previous view to this one, clipped to [-1, 1]."""
        if self.before is None:
            return 0.0
        total = 0.0
        for index, test in enumerate(self.loaded.rewards):
            if test.disabled:
                continue
            self.page[0:8] = self.token(wire.RUNS_REWARD, index)
            self.refill()
            try:
                total += test.program.reward(self.before, self.view)
            except MemoryError:
                raise
            except (OutOfTicks, Exception) as error:
                self.notes.append(f"reward {index}: {sentence(error)}")
        return max(-1.0, min(1.0, total))


def _line(generator: Any) -> int:
    """Line of the innermost suspended generator."""
    while getattr(generator, "gi_yieldfrom", None) is not None and hasattr(generator.gi_yieldfrom, "gi_frame"):
        generator = generator.gi_yieldfrom
    frame = generator.gi_frame
    return frame.f_lineno if frame is not None else 0
