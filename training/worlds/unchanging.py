"""Checks that a value which generated code can reach is immutable all the way down and has a fixed order.

A list in a view could be filled by one coded action and read by the next, and the order of Python's own sets comes
from hashes, which are addresses for some values: then an execution would not follow from seeds and views alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from rlgpt.training.ordered_sets import FrozenSet

_IMMUTABLE_TYPES = (bool, int, float, str, bytes, range, type(None))
_REPLACEMENTS = {
    list: "a tuple",
    dict: "types.MappingProxyType",
    bytearray: "bytes",
    set: "rlgpt.training.ordered_sets.FrozenSet, or a sorted tuple",
    frozenset: "rlgpt.training.ordered_sets.FrozenSet, or a sorted tuple",
}


def find_flaw(value: object, name: str) -> str:
    """A sentence on what is mutable or unordered in `value`, which is called `name`, or in something inside it; empty
    if nothing is."""
    kind = type(value)
    if kind in _IMMUTABLE_TYPES:
        return ""
    for mutable, instead in _REPLACEMENTS.items():
        if isinstance(value, mutable):
            return f"{name} is a {kind.__name__}; use {instead}"
    if isinstance(value, MappingProxyType):
        return _find_first((f"{name}[{key!r}]", item) for key, item in value.items()) or _find_first(
            (f"the key {key!r} of {name}", key) for key in value
        )
    if isinstance(value, tuple) and kind is not tuple:  # a named one: its properties too
        data = public_data(value)
        if flaw := _find_first((f"{name}.{attribute}", member) for attribute, member in data.items()):
            return flaw
    if isinstance(value, tuple | FrozenSet):
        return _find_first((f"{name}[{index}]", item) for index, item in enumerate(value))
    if hasattr(value, "__dict__"):
        return f"{name} is a {kind.__name__} with a __dict__ that code could fill; give its class __slots__"
    return _find_flaw_of_object(value, name)


def _find_first(members: Iterable[tuple[str, object]]) -> str:
    return next(filter(None, (find_flaw(member, name) for name, member in members)), "")


def public_data(value: object) -> dict[str, object]:
    """The attributes of an object without underscore that are not its methods."""
    values = {name: getattr(value, name) for name in dir(value) if not name.startswith("_")}
    return {name: each for name, each in values.items() if not callable(each)}


def _find_flaw_of_object(value: object, name: str) -> str:
    members = public_data(value)
    for attribute in members:
        if _can_be_set(value, attribute):
            return f"{name}.{attribute} can be changed"
    return _find_first((f"{name}.{attribute}", member) for attribute, member in members.items())


def _can_be_set(value: object, attribute: str) -> bool:
    try:
        setattr(value, attribute, getattr(value, attribute))
    except (AttributeError, TypeError):
        return False
    return True
