"""Sets for generated code that keep the order in which values were added.

The order of Python's own sets comes from hashes, and the hash of a function, of a view and (before Python 3.12) of
None is its address in memory: code that loops over such a set would do something else in another process. In the
language of actions `set`, `frozenset`, `{a, b}`, set comprehensions and what `.keys()` and `.items()` give are the
classes below, so no hash decides anything that code can see. Standard library only.

Nothing here trusts its arguments. Whoever can reach a `FrozenSet` (every call can, if it is a constant or belongs to a
view) must not be able to change it: it stands on a mapping proxy, which refuses `set.add(that_frozenset, value)` too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

_DICTS = (dict, MappingProxyType)


def _set_like(value: object) -> bool:
    return isinstance(value, _Ordered | set | frozenset)


class _Ordered:
    """What sets, frozen sets and the keys of a dict can all do. `_of` maps each member to anything."""

    __slots__ = ("_of",)
    _of: Any

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._of)

    def __contains__(self, value: object) -> bool:
        return value in self._of

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}"

    def _members(self) -> dict[Any, Any]:
        """A dict of its own."""
        return dict.fromkeys(self)

    def _new(self, members: dict[Any, Any]) -> _Ordered:
        result = Set()
        result._of = members
        return result

    # Comparisons

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, _Ordered | set | frozenset):
            return NotImplemented
        return self._members().keys() == dict.fromkeys(other).keys()

    def __le__(self, other: Any) -> Any:
        return self.issubset(other) if _set_like(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return self.issuperset(other) if _set_like(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return len(self) < len(other) and self.issubset(other) if _set_like(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return len(self) > len(other) and self.issuperset(other) if _set_like(other) else NotImplemented

    def issubset(self, other: Iterable[Any]) -> bool:
        return self._members().keys() <= dict.fromkeys(other).keys()

    def issuperset(self, other: Iterable[Any]) -> bool:
        return self._members().keys() >= dict.fromkeys(other).keys()

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        return self._members().keys().isdisjoint(dict.fromkeys(other))

    # New sets: first the members of the left side in their order, then those of the right side

    def union(self, *others: Iterable[Any]) -> _Ordered:
        members = self._members()
        for other in others:
            members.update(dict.fromkeys(other))
        return self._new(members)

    def intersection(self, *others: Iterable[Any]) -> _Ordered:
        members = self._members()
        for other in others:
            other_members = dict.fromkeys(other)
            members = {value: None for value in members if value in other_members}
        return self._new(members)

    def difference(self, *others: Iterable[Any]) -> _Ordered:
        members = self._members()
        for other in others:
            for value in dict.fromkeys(other):
                members.pop(value, None)
        return self._new(members)

    def symmetric_difference(self, other: Iterable[Any]) -> _Ordered:
        members, others = self._members(), dict.fromkeys(other)
        both = [value for value in others if value in members]
        members.update(others)
        for value in both:
            del members[value]
        return self._new(members)

    def __or__(self, other: Any) -> Any:
        return self.union(other) if _set_like(other) else NotImplemented

    def __and__(self, other: Any) -> Any:
        return self.intersection(other) if _set_like(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return self.difference(other) if _set_like(other) else NotImplemented

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(other) if _set_like(other) else NotImplemented

    # The left side is a set of Python's own, from a world that hands one out

    def __ror__(self, other: Any) -> Any:
        return FrozenSet(other) | self if _set_like(other) else NotImplemented

    def __rand__(self, other: Any) -> Any:
        return FrozenSet(other) & self if _set_like(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return FrozenSet(other) - self if _set_like(other) else NotImplemented

    def __rxor__(self, other: Any) -> Any:
        return FrozenSet(other) ^ self if _set_like(other) else NotImplemented


class FrozenSet(_Ordered):
    """`frozenset`."""

    __slots__ = ()

    def __init__(self, values: Iterable[Any] = (), /) -> None:
        self._of = MappingProxyType(dict.fromkeys(values))

    def _new(self, members: dict[Any, Any]) -> FrozenSet:
        return FrozenSet(members)

    def __hash__(self) -> int:
        return hash(frozenset(self._of))

    def __eq__(self, other: object) -> Any:
        return _Ordered.__eq__(self, other)

    def copy(self) -> FrozenSet:
        return self


class Set(_Ordered):
    """`set`."""

    __slots__ = ()

    def __init__(self, values: Iterable[Any] = (), /) -> None:
        self._of = dict.fromkeys(values)

    def copy(self) -> _Ordered:
        return self._new(self._members())

    def add(self, value: Any, /) -> None:
        self._of[value] = None

    def discard(self, value: Any, /) -> None:
        self._of.pop(value, None)

    def remove(self, value: Any, /) -> None:
        del self._of[value]

    def pop(self) -> Any:
        """The value that was added last."""
        if not self._of:
            raise KeyError("pop from an empty set")
        return self._of.popitem()[0]

    def clear(self) -> None:
        self._of.clear()

    def update(self, *others: Iterable[Any]) -> None:
        for other in others:
            self._of.update(dict.fromkeys(other))

    def _become(self, result: _Ordered) -> Set:
        self._of = result._of
        return self

    def __ior__(self, other: Any) -> Any:
        if not _set_like(other):
            return NotImplemented
        self.update(other)
        return self

    def __iand__(self, other: Any) -> Any:
        return self._become(self.intersection(other)) if _set_like(other) else NotImplemented

    def __isub__(self, other: Any) -> Any:
        return self._become(self.difference(other)) if _set_like(other) else NotImplemented

    def __ixor__(self, other: Any) -> Any:
        return self._become(self.symmetric_difference(other)) if _set_like(other) else NotImplemented


class Keys(_Ordered):
    """What `.keys()` gives: a window on a dict, which may change behind it."""

    __slots__ = ()

    def __init__(self, of: Mapping[Any, Any], /) -> None:
        self._of = of

    def __reversed__(self) -> Iterator[Any]:
        keys: Iterator[Any] = reversed(self._of)
        return keys


class Items(_Ordered):
    """What `.items()` gives."""

    __slots__ = ()

    def __init__(self, of: Mapping[Any, Any], /) -> None:
        self._of = of

    def __iter__(self) -> Iterator[Any]:
        return iter(self._of.items())

    def __contains__(self, value: object) -> bool:
        return value in self._of.items()

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Items):
            return self._of == other._of
        return _Ordered.__eq__(self, other)

    def __reversed__(self) -> Iterator[Any]:
        items: Iterator[Any] = reversed(self._of.items())
        return items


def window(value: Any, name: str) -> Any:
    """`value.keys` or `value.items`, which code is about to call."""
    if isinstance(value, _DICTS):
        return (lambda: Keys(value)) if name == "keys" else (lambda: Items(value))
    if value is dict:
        return Keys if name == "keys" else Items
    return getattr(value, name)
