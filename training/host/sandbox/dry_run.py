"""Runs a source twice on recorded views before it is admitted: it must not fail, and give the same in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from types import ModuleType

from rlgpt.training.host.sandbox.lane import BAD_YIELD, BUDGET, ERROR, HostLane, Loaded, LoadedAction
from rlgpt.training.host.sandbox.parsing import Refused
from rlgpt.training.host.sandbox.program import Program
from rlgpt.training.host.sandbox.runtime import Meter, OutOfTicks, Rng, line_of, sentence
from rlgpt.training.host.wire import OPEN, RESUME, START, WHOLE, AnswerCodec

COMBINATIONS = 12
"""Argument combinations tried."""
_FAILED = {ERROR: "error", BAD_YIELD: "bad yield", BUDGET: "budget"}


def dry_run(program: Program, world: ModuleType, meter: Meter, views: Sequence[Sequence[bytes]]) -> None:
    """Raises Refused with the first failure.

    The first time everything runs in order, one call after the other. The second time the source is made afresh, so
    that its functions and constants lie elsewhere in memory, the last call is the first, and the calls take turns as
    in the lanes of a training. Code that keeps something between calls, or lets an address decide, differs.
    """
    calls = _calls(program, world, meter, views)
    once = [list(call) for call in calls]
    again = _in_turns(_calls(program.again(), world, meter, views))
    if once != again:
        raise Refused("not repeatable", 0, "two runs on the same views differed; decide by `view` and `rng` only")


def _in_turns(calls: Sequence[Iterator[object]]) -> list[list[object]]:
    """What each of some calls comes to if the last begins and all are resumed in turns."""
    told: list[list[object]] = [[] for _ in calls]
    going = list(range(len(calls)))
    while going:
        for index in reversed(tuple(going)):
            try:
                told[index].append(next(calls[index]))
            except StopIteration:
                going.remove(index)
    return told


def _calls(
    program: Program, world: ModuleType, meter: Meter, views: Sequence[Sequence[bytes]]
) -> list[Iterator[object]]:
    """Each gives what one step comes to after the other."""
    if program.checked.kind != "action":
        return [_watch(program, world, meter, sequence) for sequence in views]
    names = list(program.checked.arguments)
    bound = [
        dict(zip(names, values, strict=True))
        for values in islice(product(*program.checked.arguments.values()), COMBINATIONS)
    ]
    # Every combination on the first sequence, the first one on all.
    runs = [(arguments, sequence) for arguments in bound for sequence in views[:1]]
    runs += [(bound[0], sequence) for sequence in views[1:]]
    return [_call(LoadedAction(program, arguments), world, meter, sequence) for arguments, sequence in runs]


def _call(slot: LoadedAction, world: ModuleType, meter: Meter, sequence: Sequence[bytes]) -> Iterator[object]:
    """Yields of one call along recorded views."""
    # Its own page: the host's goes on saying that a source is being admitted.
    lane = HostLane(0, 0, world, meter, bytearray(8))
    lane.load(Loaded(slots=[slot]), AnswerCodec(tuple, world.NATIVE_ACTION_SIZE, 1, 0, 0))
    for step, packed in enumerate(sequence):
        flags = OPEN | START | WHOLE if step == 0 else RESUME
        lane.see(packed, flags)
        if step == 0:
            try:
                meter.refill()
                slot.program.namespace["rng"] = Rng(0, 0)
                yield slot.program.available(lane.view, slot.arguments)
            except (OutOfTicks, Exception) as error:
                raise Refused("dry run", line_of(error), f"`available`: {sentence(error)}") from None
        try:
            outcome = lane.advance(flags, 0, step, packed)
        except MemoryError as error:
            raise Refused("dry run", line_of(error), f"error on a recorded view: {sentence(error)}") from None
        if outcome.end in _FAILED:
            raise Refused(
                "dry run",
                _line_in(outcome.message),
                f"{_FAILED[outcome.end]} on a recorded view: {outcome.message}",
            )
        yield outcome
        if outcome.end:
            break
    lane.drop()


def _watch(program: Program, world: ModuleType, meter: Meter, sequence: Sequence[bytes]) -> Iterator[object]:
    """Values of a predicate or a reward along recorded views."""
    decode = world.decoder().view
    start = before = None
    for packed in sequence:
        view = decode(packed)
        if start is None:
            start = before = world.decoder().view(packed)
        meter.refill()
        try:
            if program.checked.kind == "reward":
                value: object = program.reward(before, view)
            else:
                value = program.holds(start, view)
        except (OutOfTicks, Exception) as error:
            raise Refused("dry run", line_of(error), f"on a recorded view: {sentence(error)}") from None
        yield value
        before = view


def _line_in(message: str) -> int:
    head = message.removeprefix("line ").partition(":")[0]
    return int(head) if head.isdigit() else 0
