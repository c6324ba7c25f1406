"""One lane of a host: the views of one env, its open call, and what is asked about them.

Every evaluation of a source goes through one of the `_run`, `_holds`, ... methods below; each names itself on
the shared page first, refills the meter and turns whatever happens into an end code and a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from rlgpt.training.host import wire
from rlgpt.training.host.sandbox.program import Program
from rlgpt.training.host.sandbox.runtime import STEADY_TICKS, TICKS, Meter, OutOfTicks, Rng, is_plain, line_of, sentence
from rlgpt.training.host.wire import AnswerCodec

STEPS_CAP = 1_000
"""Env steps of one call, whatever the caller's own cap."""

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
        """Why it is not run, empty if it is."""


class Test:
    """A predicate or a generated reward."""

    __slots__ = ("disabled", "program")

    def __init__(self, program: Program) -> None:
        self.program = program
        self.disabled = ""
        """As of a slot."""


class Item(NamedTuple):
    test: Test
    trigger: Test | None
    """Of a guard; None: a step of the sequence."""
    slot: LoadedAction


class Loaded(NamedTuple):
    """Everything a host may run; indices as in `Programs`."""

    slots: Sequence[LoadedAction] = ()
    plan: Sequence[Item] = ()
    predicates: Sequence[Test] = ()
    rewards: Sequence[Test] = ()
    lines: bool = False


class Call:
    """A generator that goes on with the next view."""

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
        """As in an answer: index, with the plan's bit when it is the plan's."""
        self.token = token
        self.rng = rng
        self.outcomes = outcomes
        """Yielded text or integer (with its line, where lines are told) -> what it came to in this lane."""
        self.steps = 0
        self.ticks = TICKS
        """What it may use before its next yield."""


class CallResult(NamedTuple):
    """What one evaluation of a call came to."""

    command: tuple[int, ...] | None
    end: int
    message: str
    action: int
    record: bytes
    """Its record, if nothing else was asked."""
    line: int = 0
    """Of the yield, where lines are told."""


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
        self.spent: set[int] = set()
        """Guards of the plan that could do nothing since their trigger came true."""
        self.notes: list[str] = []

    def token(self, what: int, index: int) -> bytes:
        return wire.TOKEN.pack(self.index, what, index)

    def load(self, loaded: Loaded, codec: AnswerCodec[Any]) -> None:
        """Drops the open call; the episode's views stay."""
        self.drop()
        self.loaded = loaded
        self.codec = codec
        self.outcomes = {}
        self.spent.clear()

    def see(self, packed: bytes, flags: int) -> None:
        if flags & wire.START:
            self.drop()
        self.page[0:8] = self.decoding
        if flags & wire.START:
            self.before = None
            self.spent.clear()
            # Its own decoder: a later change of the map memory must not show in `start`.
            self.start = self.world.decoder().view(packed)
        else:
            self.before = self.view
        if flags & wire.WHOLE:
            self.decode = self.world.decoder().view
        self.view = self.decode(packed)

    def advance(self, flags: int, index: int, step: int, packed: bytes) -> CallResult:
        """Open or resume what the flags say."""
        if flags & wire.OPEN:
            self.drop()
            if index == wire.FOLLOW_PLAN:
                self.following = True
                return self._follow(step, packed)
            slot = self.loaded.slots[index]
            return self._first(slot, self.token(wire.RUNS_ACTION, index), index, step, packed)
        if self.following:
            return self._follow(step, packed)
        if self.call is None:
            return self._ended(RETURNED, "no call is open", wire.NO_ACTION)
        return self._run(self.call, self.view)

    def resume(self, call: Call, packed: bytes) -> CallResult:
        """`see` and `advance` of a call that goes on: what nearly every ask is."""
        self.page[0:8] = call.token
        self.before = self.view
        self.view = view = self.decode(packed)
        return self._go_on(call, view)

    def drop(self) -> None:
        """Close the open call while its own token stands on the page."""
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

    def _first(self, slot: LoadedAction, token: bytes, action: int, step: int, packed: bytes) -> CallResult:
        """Open a call and run it to its first yield."""
        if slot.disabled:
            return self._ended(QUARANTINED, f"this source is disabled: {slot.disabled}", action)
        self.page[0:8] = token
        rng = Rng(self.seed, step, crc32(packed)) if slot.program.checked.uses_rng else None
        outcomes = self.outcomes.setdefault(action, {})
        try:
            generator = slot.program.open(self.view, slot.arguments)
        except TypeError as error:  # the source has given the name of its action to something else
            return self._ended(ERROR, sentence(error), action)
        self.call = Call(generator, slot, action, token, rng, outcomes)
        return self._go_on(self.call, None)

    def _ended(self, end: int, message: str, action: int) -> CallResult:
        """The open call, if any, is over."""
        self.call = None
        message = message[: wire.TEXT_CAP // 4]
        record = self.codec.bare(self.index, None, end, action, len(message.encode("utf-8", "replace")))
        return CallResult(None, end, message, action, record)

    def _run(self, call: Call, value: object) -> CallResult:
        """Name the call on the page and go on with it."""
        self.page[0:8] = call.token
        return self._go_on(call, value)

    def _go_on(self, call: Call, value: object) -> CallResult:
        """Resume a call with `value` until it yields or ends."""
        self.refill(call.ticks)
        if call.rng is not None:
            call.slot.program.namespace["rng"] = call.rng
        try:
            yielded = call.generator.send(value)
        except StopIteration:
            return self._ended(RETURNED, "", call.action)
        except OutOfTicks as error:
            return self._ended(BUDGET, f"line {line_of(error)}: {OUT_OF_TICKS}", call.action)
        except MemoryError:
            raise
        except Exception as error:
            return self._ended(ERROR, sentence(error), call.action)
        call.steps += 1
        call.ticks = min(TICKS, self.remaining() + STEADY_TICKS)
        if call.steps > STEPS_CAP:
            self._close(call)
            return self._ended(BUDGET, f"a call takes at most {STEPS_CAP} env steps", call.action)
        # Only these two types: 1, True and 1.0 are equal, but not equally allowed.
        memorable = type(yielded) is str or type(yielded) is int
        name = (yielded, _line(call.generator)) if self.loaded.lines else yielded
        outcome = call.outcomes.get(name) if memorable else None
        if outcome is None:
            outcome = self._encoded(call, yielded)
            if memorable and outcome.command is not None and len(call.outcomes) < OUTCOMES_CAP:
                call.outcomes[name] = outcome
        return outcome

    def _encoded(self, call: Call, yielded: object) -> CallResult:
        """The world's command for what was yielded, or the end of the call."""
        line = _line(call.generator)
        try:
            if not is_plain(yielded):
                raise ValueError(f"yield a primitive, not a {type(yielded).__name__}")
            command = self.encode(yielded)
            told = line if self.loaded.lines else 0
            record = self.codec.bare(self.index, command, YIELDED, call.action, 0, told)
            return CallResult(command, YIELDED, "", call.action, record, told)
        except ValueError as error:
            message = str(error)
        except Exception as error:
            message = sentence(error)
        self._close(call)
        return self._ended(BAD_YIELD, f"line {line}: {message}", call.action)

    def _follow(self, step: int, packed: bytes) -> CallResult:
        """The first guard whose trigger holds, else the first step that is not done. A running item goes on until it
        returns, is done, or a guard takes its place."""
        plan = self.loaded.plan
        call, self.call = self.call, None
        if call is not None:
            index = call.action & ~wire.PLAN_BIT
            if self._holds(plan[index].test, wire.RUNS_PLAN_TEST, index) or self._preempted(plan, index):
                self._close(call)
            else:
                self.call = call
                outcome = self._run(call, self.view)
                if outcome.end != RETURNED:
                    self.following = outcome.end == YIELDED
                    return outcome
        outcome = self._first_step(plan, step, packed)
        self.following = outcome.end == YIELDED
        return outcome

    def _first_step(self, plan: Sequence[Item], step: int, packed: bytes) -> CallResult:
        """Open guards, then steps in the order of need, until one takes an env step."""
        returned: set[int] = set()
        while True:
            index = self._first_open(plan)
            if index < 0:
                return self._ended(RETURNED, "every sub-action of the plan is done", wire.NO_ACTION)
            action = wire.PLAN_BIT | index
            if index in returned:  # a step: guards that returned are spent
                said = f"sub-action {index + 1} returned without an env step and is not done"
                return self._ended(RETURNED, said, action)
            token = self.token(wire.RUNS_PLAN_ACTION, index)
            outcome = self._first(plan[index].slot, token, action, step, packed)
            if outcome.end != RETURNED:
                return outcome
            if plan[index].trigger is not None:
                self.spent.add(index)
            else:
                returned.add(index)

    def _first_open(self, plan: Sequence[Item]) -> int:
        guard = self._first_guard(plan)
        if guard >= 0:
            return guard
        for index, item in enumerate(plan):
            if item.trigger is None and not self._holds(item.test, wire.RUNS_PLAN_TEST, index):
                return index
        return -1

    def _first_guard(self, plan: Sequence[Item]) -> int:
        """One that returned without an env step is spent until its trigger has been false: it must not keep the plan
        from going on."""
        for index, item in enumerate(plan):
            if item.trigger is None:
                continue
            if not self._holds(item.trigger, wire.RUNS_PLAN_TEST, wire.TRIGGER_BIT | index):
                self.spent.discard(index)
            elif index not in self.spent:
                return index
        return -1

    def _preempted(self, plan: Sequence[Item], running: int) -> bool:
        """Whether a guard takes the place of what runs: any that of a step, an earlier one that of a guard."""
        guard = self._first_guard(plan)
        return guard >= 0 and (plan[running].trigger is None or guard < running)

    def _holds(self, test: Test, what: int, index: int) -> bool:
        """False, with a note, when the predicate fails."""
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
        """Bit i: action i may start in this view. Its random numbers are those of a call that would open now, so that
        they do not depend on the lane."""
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
        """Sum over the generated rewards of the step from the previous view to this one, in [-1, 1]."""
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
