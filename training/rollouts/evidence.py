"""A view as plain data, for evidence that agents and people read."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rlgpt.training.ordered_sets import FrozenSet
from rlgpt.training.worlds.optional_parts import DrawsViews, ShowsMoments, describe_view, offers
from rlgpt.training.worlds.protocol import World

DEPTH = 4
ENTRIES = 40


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
            return own
        names = [name for name in dir(view) if not name.startswith("_")]
        values = {name: getattr(view, name) for name in names}
        return {name: _plain(value, DEPTH) for name, value in values.items() if not callable(value)}

    def moment(self, packed: bytes) -> dict[str, Any]:
        """A line of a timeline: few values, all of them short."""
        if offers(self._module, ShowsMoments):
            return {name: _plain(value, 2) for name, value in self._module.moment(self._view(packed)).items()}
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


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth and isinstance(value, Mapping):
        return {str(key): _plain(item, depth - 1) for key, item in list(value.items())[:ENTRIES]}
    if depth and isinstance(value, set | frozenset):
        return sorted((_plain(item, depth - 1) for item in value), key=repr)[:ENTRIES]
    if depth and isinstance(value, tuple | list | FrozenSet):
        return [_plain(item, depth - 1) for item in list(value)[:ENTRIES]]
    return repr(value)[:200]
