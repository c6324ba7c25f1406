"""How events stand in rows: their kind by name, and their payload.

Read back, an event has all its fields with values of their types, whichever version of rlgpt wrote it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

from rlgpt.store.events import Decision, Event
from rlgpt.store.row_types import JsonObject


def kind_of(event: Event | type[Event]) -> str:
    """As the column `kind` names it."""
    return _snake((event if isinstance(event, type) else type(event)).__name__)


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


KINDS: dict[str, type[Event]] = {kind_of(cls): cls for cls in get_args(Event)}
DECISIONS = tuple(kind_of(cls) for cls in get_args(Decision))


def key_of(field: Field[Any]) -> str:
    """As the payload names it: a trailing underscore keeps a field's name from being a word of Python."""
    return field.name.rstrip("_")


def payload_of(event: Event) -> JsonObject:
    """As the column `payload` holds it."""
    payload = {}
    for key, name, optional in _layout(kind_of(event)).keys:
        value = getattr(event, name)
        if not (optional and value is None):
            payload[key] = value
    return payload


def read_event(kind: str, payload: JsonObject) -> Event | None:
    """None for a kind of a later version, whose further keys are passed over too.

    Raises ValueError for a payload that lacks a key or holds something of another type there.
    """
    cls = KINDS.get(kind)
    if cls is None:
        return None
    _, types_by_key, defaults = _layout(kind)
    # Made as copy and pickle make an instance: the __init__ of a frozen dataclass sets each field by itself through
    # object.__setattr__, which takes longer than all else here. A fold reads every event of a session.
    event = object.__new__(cls)
    values = vars(event)
    values.update(defaults)
    for key, value in payload.items():
        if key not in types_by_key:
            continue
        name, types = types_by_key[key]
        if value is None and types == _NUMBER:  # not a number (NaN) is stored as null
            value = math.nan
        if not isinstance(value, types) or (isinstance(value, list) and not all(isinstance(x, str) for x in value)):
            raise ValueError(f"{key} of an event {kind} cannot be {value!r:.80}")
        values[name] = value
    if len(values) < len(types_by_key):
        missing = [key for key, (name, _) in types_by_key.items() if name not in values]
        raise ValueError(f"an event {kind} has no {', '.join(missing)}")
    return event


_NUMBER = (float, int)


class _Layout(NamedTuple):
    """How the fields of a kind stand in its payload."""

    keys: Sequence[tuple[str, str, bool]]
    """Key, field, and whether it is left out when it is None."""
    types: Mapping[str, tuple[str, tuple[type, ...]]]
    """Key -> the field, and the types of JSON that it takes."""
    defaults: Mapping[str, Any]
    """Field -> what it is where the payload lacks it."""


@cache
def _layout(kind: str) -> _Layout:
    cls = KINDS[kind]
    hints = get_type_hints(cls)
    types_by_key = {}
    for f in fields(cls):
        hint = hints[f.name]
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        types_by_key[key_of(f)] = (f.name, tuple(kind for part in parts for kind in _types(part)))
    keys = [(key_of(f), f.name, f.default is None) for f in fields(cls)]
    return _Layout(keys, types_by_key, {f.name: f.default for f in fields(cls) if f.default is not MISSING})


def _types(hint: Any) -> tuple[type, ...]:
    if get_origin(hint) is Literal:  # a later version may know further words
        return (str,)
    if is_typeddict(hint) or get_origin(hint) is Mapping:
        return (dict,)
    if get_origin(hint) is Sequence:
        return (list,)
    return _NUMBER if hint is float else (hint,)
