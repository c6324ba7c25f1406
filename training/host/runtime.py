"""What a source finds around it when it runs: its builtins, its random numbers, its budget of ticks."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from types import MappingProxyType
from typing import Any

from rlgpt.training.host import rules

TICKS = 50_000
"""Loop rounds and function calls between two yields; about 10 ms of ordinary code."""
LIBRARY_TICKS = 20
"""Charged for each call of a library function unless the world's `COSTS` say otherwise."""
RANGE_CAP = 1_000_000
TEXT_CAP = 4_000
_MASK = (1 << 64) - 1


class OutOfTicks(BaseException):
    """The budget is spent. Not an Exception: sources can only catch those."""


class Meter:
    """The budget shared by everything in a host, as only one source runs at a time."""

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

        def refill() -> None:
            nonlocal left
            left = full

        full = ticks
        self.ticks = ticks
        self.tick: Callable[[], bool] = tick
        self.spend: Callable[[int], None] = spend
        self.refill: Callable[[], None] = refill

    def charged(self, function: Callable[..., Any], cost: int) -> Callable[..., Any]:
        """`function`, paying `cost` ticks first."""
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
        return low + self.randrange(high - low + 1)

    def choice(self, sequence: Sequence[Any]) -> Any:
        return sequence[self.randrange(len(sequence))]

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """In place."""
        for i in range(len(items) - 1, 0, -1):
            j = self.randrange(i + 1)
            items[i], items[j] = items[j], items[i]


def text(value: object = "") -> str:
    """`str` without memory addresses: only of plain values."""
    if not is_plain(value):
        raise TypeError(f"a text is made of numbers, texts, None, tuples and lists, not of {_kind(value)}")
    made = str(value)
    if len(made) > TEXT_CAP:
        raise ValueError(f"texts have at most {TEXT_CAP} characters")
    return made


def is_plain(value: object, depth: int = 4) -> bool:
    """Whether a value is a number, text or None, or a short nest of lists and tuples of these, exactly."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return True
    if kind in (tuple, list) and depth and isinstance(value, tuple | list):
        return len(value) <= 256 and all(is_plain(part, depth - 1) for part in value)
    return False


def _kind(value: object) -> str:
    return type(value).__name__


def remainder(left: Any, right: Any) -> Any:
    """`%` on numbers; `%` on a text would format any object."""
    if isinstance(left, str | bytes):
        raise TypeError("`%` on a text is not available; write an f-string")
    return left % right


def bounded_range(*args: int) -> range:
    made = range(*args)
    if len(made) > RANGE_CAP:
        raise ValueError(f"range may have at most {RANGE_CAP} steps")
    return made


_AS_TYPE: dict[Any, Any] = {text: str, bounded_range: range}


def is_instance(value: object, kind: Any) -> bool:
    kinds: tuple[Any, ...] = kind if isinstance(kind, tuple) else (kind,)
    real: tuple[Any, ...] = tuple([_AS_TYPE.get(each, each) for each in kinds])
    return isinstance(value, real)


def _builtins() -> dict[str, Any]:
    import builtins

    safe = {name: getattr(builtins, name) for name in rules.BUILTINS + rules.EXCEPTIONS}
    safe.update(str=text, range=bounded_range, isinstance=is_instance)
    return safe


BUILTINS = _builtins()


def frozen(value: Any) -> Any:
    """A module constant, made immutable all the way down: nothing outlives a call."""
    if isinstance(value, list | tuple):
        return tuple(frozen(part) for part in value)
    if isinstance(value, set | frozenset):
        return frozenset(frozen(part) for part in value)
    if isinstance(value, dict):
        return MappingProxyType({frozen(key): frozen(part) for key, part in value.items()})
    return value


def sentence(error: BaseException) -> str:
    """What went wrong and in which line of the source, without running any of the source's objects."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<action>":
            line = trace.tb_lineno
        trace = trace.tb_next
    first = error.args[0] if error.args else ""
    said = text(first)[:300] if is_plain(first) else ""
    where = f"line {line}: " if line else ""
    return f"{where}{type(error).__name__}{': ' + said if said else ''}"
