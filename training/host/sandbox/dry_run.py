"""Runs a source twice on recorded views before it is admitted: it must not fail, and both runs must have one result."""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
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


def dry_run(
    program: Program, world: ModuleType, meter: Meter, views: Sequence[Sequence[bytes]], page: MutableSequence[int]
) -> None:
    """Raises Refused with the first failure. The page has another token in each step, because the trusted side limits
    the CPU time of one evaluation, not that of all steps.

    The first run makes one call after the other. For the second run the source is loaded again, so that its functions
    and constants have other addresses; the last call starts first, and the calls take turns as in the lanes of a
    training. Code that keeps state between calls, or depends on an address, gives other results there.
    """
    calls = _start_calls(program, world, meter, views)
    first_run = [list(_numbered(call, page)) for call in calls]
    again = _start_calls(program.reload(), world, meter, views)
    second_run = _run_in_turns([_numbered(call, page) for call in again])
    if first_run != second_run:
        raise Refused("not repeatable", 0, "two runs on the same views differed; decide by `view` and `rng` only")


def _numbered(steps: Iterator[object], page: MutableSequence[int]) -> Iterator[object]:
    """The steps, before each of which the first byte of the page changes."""
    while True:
        page[0] = page[0] + 1 & 0xFF
        try:
            yield next(steps)
        except StopIteration:
            return


def _run_in_turns(calls: Sequence[Iterator[object]]) -> list[list[object]]:
    """The steps of each call, where the last call starts first and all are resumed in turns."""
    steps_of_calls: list[list[object]] = [[] for _ in calls]
    open_calls = list(range(len(calls)))
    while open_calls:
        for index in reversed(tuple(open_calls)):
            try:
                steps_of_calls[index].append(next(calls[index]))
            except StopIteration:
                open_calls.remove(index)
    return steps_of_calls


def _start_calls(
    program: Program, world: ModuleType, meter: Meter, views: Sequence[Sequence[bytes]]
) -> list[Iterator[object]]:
    """One iterator per call, over the results of its steps."""
    if program.checked.kind != "action":
        return [_run_test(program, world, meter, sequence) for sequence in views]
    names = list(program.checked.arguments)
    bound = [
        dict(zip(names, values, strict=True))
        for values in islice(product(*program.checked.arguments.values()), COMBINATIONS)
    ]
    # Every combination on the first sequence, the first one on all.
    runs = [(arguments, sequence) for arguments in bound for sequence in views[:1]]
    runs += [(bound[0], sequence) for sequence in views[1:]]
    return [_run_call(LoadedAction(program, arguments), world, meter, sequence) for arguments, sequence in runs]


def _run_call(slot: LoadedAction, world: ModuleType, meter: Meter, sequence: Sequence[bytes]) -> Iterator[object]:
    """The results of the steps of one call on recorded views. Raises Refused."""
    # A page of its own, because the host's page must go on naming the admission as what runs.
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


def _run_test(program: Program, world: ModuleType, meter: Meter, sequence: Sequence[bytes]) -> Iterator[object]:
    """The values of a predicate or a reward on recorded views. Raises Refused."""
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
