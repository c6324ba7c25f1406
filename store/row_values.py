"""Whether values read from a database or from JSON are those that `row_types.py` declares. Pure, standard library only.

A key that a type does not know is passed over: a later version may have written it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from rlgpt.store.row_types import PARTS, ROWS, CommandRow, Range


@cache
def hints(table: str) -> Mapping[str, Any]:
    """Column -> type of a table of the sequence or of the inbox, with ranges; empty for any other."""
    row = CommandRow if table == "command" else ROWS.get(table)
    return get_type_hints(row, include_extras=True) if row else {}


@cache
def range_of(table: str, column: str) -> Range | None:
    """Of a column that is one number or one text."""
    hint = hints(table).get(column)
    for part in (hint, *get_args(hint)) if get_origin(hint) in (Union, UnionType) else (hint,):
        if get_origin(part) is Annotated:
            return next((extra for extra in get_args(part)[1:] if isinstance(extra, Range)), None)
    return None


def fits(value: Any, hint: Any) -> bool:
    """Whether plain data is of a type."""
    return _check_of(hint)(value)


Check = Callable[[Any], bool]


@cache
def _check_of(hint: Any) -> Check:
    """`fits` of one type: what it asks of a value is found once, as a session has a hundred thousand of them."""
    if is_typeddict(hint):
        return _has_fields(hint)
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        ranges = [extra for extra in parts[1:] if isinstance(extra, Range)]
        return _is_within(_check_of(parts[0]), ranges) if ranges else _check_of(parts[0])
    if kind is NotRequired:
        return _check_of(parts[0])
    if kind in (Union, UnionType):
        kinds = [_check_of(part) for part in parts]
        return lambda value: any(check(value) for check in kinds)
    if kind is Literal:  # a later version may know further words
        return lambda value: isinstance(value, str)
    if kind is Mapping:
        inner = _check_of(parts[1])
        return lambda value: isinstance(value, dict) and all(map(inner, value.values()))
    if kind is Sequence:
        inner = _check_of(parts[0])
        return lambda value: isinstance(value, list) and all(map(inner, value))
    if hint is Any:
        return lambda value: True
    if hint is NoneType or hint is None:
        return lambda value: value is None
    if hint is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    return lambda value: isinstance(value, hint)


def _has_fields(hint: Any) -> Check:
    fields, required = _fields(hint)
    checks = {name: _check_of(kind) for name, kind in fields.items()}

    def check(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and required <= value.keys()
            and all(checks[k](inner) for k, inner in value.items() if k in checks)
        )

    return check


def _is_within(check: Check, ranges: Sequence[Range]) -> Check:
    return lambda value: check(value) and all(_within(value, bounds) for bounds in ranges)


@cache
def _fields(hint: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
    fields = get_type_hints(hint, include_extras=True)
    optional = {name for name, kind in fields.items() if get_origin(kind) is NotRequired}  # hidden by `annotations`
    return fields, frozenset(hint.__required_keys__ - optional)


def _within(value: Any, bounds: Range) -> bool:
    return bounds.least <= (len(value) if isinstance(value, str) else value) <= bounds.most


def exceeds(part: Any, whole: Any) -> bool:
    """Whether a part, or one number of it, is above its whole."""
    numbers = part.values() if isinstance(part, Mapping) else [part]
    return any(number is not None and whole is not None and number > whole for number in numbers)


def fault(table: str, row: Mapping[str, Any]) -> str:
    """What is wrong with a row that was read, "" for a sound one."""
    for column, value in row.items():
        hint = hints(table).get(column)
        if hint is not None and value is not None and not fits(value, hint):
            return f"has no proper {column}: {value!r:.80}"
    for part, whole in PARTS.get(table, ()):
        if exceeds(row.get(part), row.get(whole)):
            return f"has more {part} than {whole}: {row[part]!r:.80} of {row[whole]}"
    return ""
