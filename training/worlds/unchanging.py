"""Checks that a value which generated code can reach is immutable all the way down and has a fixed order.

A list in a view could be filled by one coded action and read by the next, and the order of Python's own sets comes
from hashes, which are addresses for some values: then an execution would not follow from seeds and views alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from rlgpt.training.ordered_sets import FrozenSet

_PLAIN = (bool, int, float, str, bytes, range, type(None))
_INSTEAD = {
    list: "a tuple",
    dict: "types.MappingProxyType",
    bytearray: "bytes",
    set: "rlgpt.training.ordered_sets.FrozenSet, or a sorted tuple",
    frozenset: "rlgpt.training.ordered_sets.FrozenSet, or a sorted tuple",
}


def flaw(value: object, name: str) -> str:
    """A sentence that says what is wrong with `value`, called `name`, or with something inside it; else empty."""
    kind = type(value)
    if kind in _PLAIN:
        return ""
    for refused, instead in _INSTEAD.items():
        if isinstance(value, refused):
            return f"{name} is a {kind.__name__}; use {instead}"
    if isinstance(value, MappingProxyType):
        return _first((f"{name}[{key!r}]", item) for key, item in value.items()) or _first(
            (f"the key {key!r} of {name}", key) for key in value
        )
    if isinstance(value, tuple | FrozenSet):
        return _first((f"{name}[{index}]", item) for index, item in enumerate(value))
    if hasattr(value, "__dict__"):
        return f"{name} is a {kind.__name__} with a __dict__ that code could fill; give its class __slots__"
    return _flaw_of_object(value, name)


def _first(members: Iterable[tuple[str, object]]) -> str:
    return next(filter(None, (flaw(member, name) for name, member in members)), "")


def public_data(value: object) -> dict[str, object]:
    """The attributes of an object without underscore that are not its methods."""
    values = {name: getattr(value, name) for name in dir(value) if not name.startswith("_")}
    return {name: each for name, each in values.items() if not callable(each)}


def _flaw_of_object(value: object, name: str) -> str:
    members = public_data(value)
    for attribute in members:
        if _can_be_set(value, attribute):
            return f"{name}.{attribute} can be changed"
    return _first((f"{name}.{attribute}", member) for attribute, member in members.items())


def _can_be_set(value: object, attribute: str) -> bool:
    try:
        setattr(value, attribute, getattr(value, attribute))
    except (AttributeError, TypeError):
        return False
    return True
