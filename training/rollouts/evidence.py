"""A view as plain data, for evidence that agents and people read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from rlgpt.store.plain import MOST_BITS
from rlgpt.training.ordered_sets import FrozenSet
from rlgpt.training.worlds.optional_parts import DrawsViews, ShowsMoments, describe_view, offers
from rlgpt.training.worlds.protocol import World

DEPTH = 4
ENTRIES = 40
OWN_DEPTH = 20
"""Of a world's own description, which says itself what is short enough: this ends only what holds itself."""
TEXT = 200
"""Characters of what is no plain data."""


class Describer:
    """Decodes packed whole views of one world.

    In the world's own words where it has some (`optional_parts.DescribesViews`), else the view's public attributes that
    are plain data.
    """

    def __init__(self, world: World) -> None:
        self._module = import_module(world.host_module)

    def __call__(self, packed: bytes) -> dict[str, Any]:
        view = self._view(packed)
        own = describe_view(self._module, view)
        if own is not None:
            return {_name(key): _plain(value, OWN_DEPTH, None) for key, value in own.items()}
        names = [name for name in dir(view) if not name.startswith("_")]
        values = {name: getattr(view, name) for name in names}
        return {name: _plain(value, DEPTH) for name, value in values.items() if not callable(value)}

    def moment(self, packed: bytes) -> dict[str, Any]:
        """A line of a timeline: few values, all of them short."""
        if offers(self._module, ShowsMoments):
            moment = self._module.moment(self._view(packed))
            return {_name(key): _plain(value, 2) for key, value in moment.items()}
        return {name: value for name, value in self(packed).items() if isinstance(value, bool | int | float | str)}

    def picture(self, packed: bytes) -> str:
        """What is around the agent, as lines of characters; empty where the world draws none."""
        return self._module.picture(self._view(packed)) if offers(self._module, DrawsViews) else ""

    def _view(self, packed: bytes) -> Any:
        return self._module.decoder().view(packed)


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What changed: key -> [before, after], nested where both are dicts."""
    changed: dict[str, Any] = {}
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            inner = difference(old, new)
            if inner:
                changed[key] = inner
        elif old != new:
            changed[key] = [old, new]
    return changed


def _plain(value: Any, depth: int, entries: int | None = ENTRIES) -> Any:
    """As a row may hold it: an evaluation must not end because of what is only shown of it."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:  # a bit board, for example
        return f"a whole number of {value.bit_length():,} bits"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth and isinstance(value, Mapping):
        return {_name(key): _plain(item, depth - 1, entries) for key, item in list(value.items())[:entries]}
    if depth and isinstance(value, set | frozenset):
        return sorted((_plain(item, depth - 1, entries) for item in value), key=repr)[:entries]
    if depth and isinstance(value, tuple | list | FrozenSet):
        return [_plain(item, depth - 1, entries) for item in list(value)[:entries]]
    return _text(value, repr)


def _name(key: object) -> str:
    return key if isinstance(key, str) else _text(key, str)


def _text(value: object, write: Callable[[object], str]) -> str:
    """Python writes no whole number of more than 4,300 digits, neither alone nor inside something."""
    try:
        return write(value)[:TEXT]
    except Exception:
        return f"a {type(value).__name__}"
