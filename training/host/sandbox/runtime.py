"""What a source uses when it runs: builtins, random numbers, and its budget of work."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from types import MappingProxyType
from typing import Any

from rlgpt.training.host.sandbox import rules
from rlgpt.training.ordered_sets import FrozenSet, Set

TICKS = 50_000
"""Loop rounds and function calls between two yields at most; about 10 ms of ordinary code."""
STEADY_TICKS = 10_000
"""Ticks added at each yield, up to `TICKS`: about 2 ms, which a call may take per env step in the long run. The most
expensive code of the script books takes 1,400."""
LIBRARY_TICKS = 20
"""Charged for each call of a library function unless the world's `COSTS` say otherwise."""
RECURSION = 400
"""Depth of calls inside each other at most."""
RANGE_CAP = 1_000_000
TEXT_CAP = 4_000
PARTS_CAP = 1_000
"""Parts at most of a value that is converted to text or yielded; larger values would take longer than a call may."""
_MASK = (1 << 64) - 1


class OutOfTicks(BaseException):
    """The budget is spent. It is no Exception, because sources can catch every Exception."""


class Stack:
    """Keeps the recursion limit at a fixed distance from the current depth, so that a source may recurse equally deep
    in every call. Python counts frames from the bottom of the stack, and a call starts at different depths: deeper in a
    plan, with other questions in the same message, and in a worker."""

    def __init__(self) -> None:
        self._depth = 0

    def level(self) -> None:
        """Set the recursion limit. Must be called at the same number of frames from each evaluation of a source."""
        try:
            is_bottom = sys._getframe(self._depth).f_back is None
        except ValueError:
            is_bottom = False
        if not is_bottom:
            self._depth, frame = 0, sys._getframe()
            while frame.f_back is not None:
                self._depth, frame = self._depth + 1, frame.f_back
        if sys.getrecursionlimit() != self._depth + RECURSION:
            sys.setrecursionlimit(self._depth + RECURSION)


class Meter:
    """The budget of work and of recursion. A host has one, because only one of its sources runs at a time."""

    def __init__(self, ticks: int = TICKS) -> None:
        left = ticks

        def tick() -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                raise OutOfTicks
            return True

        def spend(ticks: int) -> None:
            nonlocal left
            left -= ticks
            if left < 0:
                raise OutOfTicks

        def refill(ticks: int = ticks) -> None:
            nonlocal left
            left = ticks
            level()

        def remaining() -> int:
            return left

        level = Stack().level
        self.ticks = ticks
        self.tick: Callable[[], bool] = tick
        self.spend: Callable[[int], None] = spend
        self.refill: Callable[..., None] = refill
        """Set the ticks that are left, to all of them by default, and the recursion limit."""
        self.remaining: Callable[[], int] = remaining

    def charged(self, function: Callable[..., Any], cost: int) -> Callable[..., Any]:
        """A wrapper of `function` that spends `cost` ticks at each call."""
        spend = self.spend

        def call(*args: Any, **kwargs: Any) -> Any:
            spend(cost)
            return function(*args, **kwargs)

        return call


class Rng:
    """Random numbers that depend on the seed alone (SplitMix64; Steele, Lea and Flood 2014)."""

    __slots__ = ("_state",)

    def __init__(self, *seeds: int) -> None:
        self._state = 0
        for seed in seeds:
            self._state = (self._next() ^ seed) & _MASK

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def random(self) -> float:
        """In [0, 1)."""
        return (self._next() >> 11) * (1.0 / (1 << 53))

    def randrange(self, stop: int) -> int:
        """In [0, stop); stop up to 2**31."""
        if type(stop) is not int or not 0 < stop <= 1 << 31:
            raise ValueError("rng.randrange needs a whole number from 1 to 2147483648")
        return self._next() % stop

    def randint(self, low: int, high: int) -> int:
        """In [low, high], both included."""
        if high < low:
            raise ValueError("rng.randint(low, high) needs a high that is not below low")
        return low + self.randrange(high - low + 1)

    def choice(self, sequence: Sequence[Any]) -> Any:
        if not len(sequence):
            raise ValueError("rng.choice has nothing to choose from")
        return sequence[self.randrange(len(sequence))]

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """In place."""
        for i in range(len(items) - 1, 0, -1):
            j = self.randrange(i + 1)
            items[i], items[j] = items[j], items[i]


def text(value: object = "") -> str:
    """`str` of a plain value; of other values it would show memory addresses. Raises TypeError, ValueError."""
    if not is_plain(value):
        raise TypeError(f"a text is made of numbers, texts, None, tuples and lists, not of {_kind(value)}")
    result = str(value)
    if len(result) > TEXT_CAP:
        raise ValueError(f"texts have at most {TEXT_CAP} characters")
    return result


def is_plain(value: object, depth: int = 4) -> bool:
    """Whether a value is a number, a text or None, or lists and tuples of these up to `depth` levels, with no
    subclasses."""
    return _plain_parts(value, depth, PARTS_CAP) >= 0


def _plain_parts(value: object, depth: int, room: int) -> int:
    """`room` minus the parts of a plain value; negative if it is not plain or has more parts."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return room - 1
    if kind in (tuple, list) and depth and isinstance(value, tuple | list):
        room -= 1
        for part in value:
            if room < 0:
                break
            room = _plain_parts(part, depth - 1, room)
        return room
    return -1


def _kind(value: object) -> str:
    return type(value).__name__


def remainder(left: Any, right: Any) -> Any:
    """`%` on numbers. Raises TypeError for a text, where `%` would format any object."""
    if type(left) is not int and isinstance(left, _FORMATS):
        raise TypeError("`%` on a text is not available; write an f-string")
    return left % right


_FORMATS = (str, bytes)


def bounded_range(*args: int) -> range:
    result = range(*args)
    if len(result) > RANGE_CAP:
        raise ValueError(f"range may have at most {RANGE_CAP} steps")
    return result


_AS_TYPE: dict[Any, Any] = {text: str, bounded_range: range}


def add_up(values: Iterable[Any], start: Any = 0) -> Any:
    """`sum` as it was until Python 3.11: since 3.12 it adds floats in another way, with another result."""
    if isinstance(start, _FORMATS):
        raise TypeError("sum adds numbers, not texts")
    for value in values:
        start = start + value
    return start


def is_instance(value: object, kind: Any) -> bool:
    kinds: tuple[Any, ...] = kind if isinstance(kind, tuple) else (kind,)
    types: tuple[Any, ...] = tuple([_AS_TYPE.get(each, each) for each in kinds])
    return isinstance(value, types)


def _builtins() -> dict[str, Any]:
    import builtins

    safe = {name: getattr(builtins, name) for name in rules.BUILTINS + rules.EXCEPTIONS}
    safe.update(str=text, range=bounded_range, sum=add_up, isinstance=is_instance, set=Set, frozenset=FrozenSet)
    return safe


BUILTINS = _builtins()


def frozen(value: Any) -> Any:
    """An immutable copy of a constant of a source, so that code cannot keep state in it between calls. Raises TypeError
    for a type that constants do not have."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list | tuple):
        return tuple(frozen(part) for part in value)
    if isinstance(value, Set | FrozenSet):
        return FrozenSet(frozen(part) for part in value)
    if isinstance(value, dict | MappingProxyType):
        return MappingProxyType({frozen(key): frozen(part) for key, part in value.items()})
    raise TypeError(f"a constant or default is made of numbers and texts, not of {_kind(value)}")


def reraise_exhaustion() -> None:
    """Runs first in every `except`: a source must not handle MemoryError and RecursionError. How much memory is left
    depends on the other lanes, and at which frame the stack ends on how often the code has run, so the result would not
    be repeatable."""
    error = sys.exc_info()[1]
    if isinstance(error, MemoryError | RecursionError):
        raise error


def sentence(error: BaseException) -> str:
    """The error with its line in the source. Calls no method of the source's objects. The length is not limited."""
    error = _raised(error)
    line = line_of(error)
    prefix = f"line {line}: " if line else ""
    reason = _REASONS.get(type(error)) or (describe_value(error.args[0]) if error.args else "")
    if type(error) in (TypeError, AttributeError) and _CHANGES_FROZEN.search(reason):
        reason += FROZEN
    return f"{prefix}{type(error).__name__}{': ' + reason if reason else ''}"


def _raised(error: BaseException) -> BaseException:
    """What the source raised: Python puts a RuntimeError, which knows no line of the generator, in place of a
    StopIteration that leaves it."""
    cause = error.__cause__
    replaced = type(error) is RuntimeError and error.args == ("generator raised StopIteration",)
    return cause if replaced and type(cause) is StopIteration else error


def line_of(error: BaseException) -> int:
    """The innermost line of the source in an error's traceback, 0 if none. The outermost one for RecursionError,
    because the frame at which the stack ends differs between runs."""
    error = _raised(error)
    line = 0
    first = isinstance(error, RecursionError)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<action>":
            line = line if first and line else trace.tb_lineno
        trace = trace.tb_next
    return line


_REASONS: dict[type[BaseException], str] = {
    RecursionError: f"more than about {RECURSION} calls inside each other",
    MemoryError: "more memory than an action may use",
    StopIteration: "`next` found nothing: give it a default, `next(..., None)`; an action ends by `return`",
    OutOfTicks: f"more than {TICKS} loop rounds and calls at once; loop less, or yield between the parts",
}
FROZEN = "; constants at the top, defaults and views cannot be changed: take list(x), dict(x) or set(x) of it first"
_CHANGES_FROZEN = re.compile(
    r"'(?:tuple|mappingproxy|FrozenSet)' object (?:does not|doesn't) support item"
    r"|'(?:tuple|mappingproxy|FrozenSet)' object has no attribute"
    r'|can only concatenate (?:tuple \(not "list"\) to tuple|list \(not "tuple"\) to list)'
)
"""A list that is a constant is a tuple when the code runs, so Python's words name what the source does not have."""
VALUE_TEXT_CAP = 300
_DIGITS = 1_000
"""Bits above which a whole number is not written out; Python refuses to write 4,300 digits."""


def describe_value(value: object, room: int = VALUE_TEXT_CAP, depth: int = 3) -> str:
    """A value as part of a sentence. Unlike `text` it takes any value: it cuts long texts and gives only the type of
    values that are not plain."""
    kind = type(value)
    if isinstance(value, str) and kind is str:
        return without_addresses(value[:room]) + ("..." if len(value) > room else "")
    if isinstance(value, int) and value.bit_length() > _DIGITS:
        return f"a whole number of {value.bit_length()} bits"
    if value is None or kind in (bool, int, float):
        return str(value)
    if isinstance(value, tuple | list) and kind in (tuple, list) and depth:
        parts = [describe_value(part, 40, depth - 1) for part in value[:4]] + ["..."] * (len(value) > 4)
        return ("({})" if kind is tuple else "[{}]").format(", ".join(parts))
    return f"a value of type {_kind(value)}"


def without_addresses(describe_value: str) -> str:
    """Python shows some objects as `<function f at 0x7f...>`; the address differs between runs."""
    return re.sub(r" at 0x[0-9a-fA-F]*", "", describe_value)
