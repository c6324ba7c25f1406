"""Before it is admitted a source runs twice on recorded views: without failing, and the same both times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product
from types import ModuleType

from rlgpt.training.host.lane import BAD_YIELD, BUDGET, ERROR, Lane, Loaded, Slot
from rlgpt.training.host.parsing import Refused
from rlgpt.training.host.program import Program
from rlgpt.training.host.runtime import Meter, OutOfTicks, Rng, line_of, sentence
from rlgpt.training.host.wire import OPEN, RESUME, START, WHOLE, AnswerCodec

COMBINATIONS = 12
"""Argument combinations tried."""
_FAILED = {ERROR: "error", BAD_YIELD: "bad yield", BUDGET: "budget"}


def dry_run(program: Program, world: ModuleType, meter: Meter, views: Sequence[Sequence[bytes]]) -> None:
    """Raises Refused with the first failure."""
    once = _record(program, world, meter, views)
    if once != _record(program, world, meter, views):
        raise Refused("not repeatable", 0, "two runs on the same views differed; decide by `view` and `rng` only")


def _record(program: Program, world: ModuleType, meter: Meter, views: Sequence[Sequence[bytes]]) -> list[object]:
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
    return [_call(Slot(program, arguments), world, meter, sequence) for arguments, sequence in runs]


def _call(slot: Slot, world: ModuleType, meter: Meter, sequence: Sequence[bytes]) -> list[object]:
    """Yields of one call along recorded views."""
    # Its own page: the host's goes on saying that a source is being admitted.
    lane = Lane(0, 0, world, meter, bytearray(8))
    lane.load(Loaded(slots=[slot]), AnswerCodec(tuple, world.COMMAND_SIZE, 1, 0, 0))
    outcomes: list[object] = []
    for step, packed in enumerate(sequence):
        flags = OPEN | START | WHOLE if step == 0 else RESUME
        lane.see(packed, flags)
        if step == 0:
            try:
                meter.refill()
                slot.program.namespace["rng"] = Rng(0, 0)
                slot.program.available(lane.view, slot.arguments)
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
        outcomes.append(outcome)
        if outcome.end:
            break
    lane.drop()
    return outcomes


def _watch(program: Program, world: ModuleType, meter: Meter, sequence: Sequence[bytes]) -> list[object]:
    """Values of a predicate or a reward along recorded views."""
    values: list[object] = []
    decode = world.decoder().view
    start = before = None
    for packed in sequence:
        view = decode(packed)
        if start is None:
            start = before = world.decoder().view(packed)
        meter.refill()
        try:
            if program.checked.kind == "reward":
                values.append(program.reward(before, view))
            else:
                values.append(program.holds(start, view))
        except (OutOfTicks, Exception) as error:
            raise Refused("dry run", line_of(error), f"on a recorded view: {sentence(error)}") from None
        before = view
    return values


def _line_in(message: str) -> int:
    head = message.removeprefix("line ").partition(":")[0]
    return int(head) if head.isdigit() else 0
