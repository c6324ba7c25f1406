"""Encodes a typed row as the plain values that are stored, folded and exported.

What a column gives back is what went in, so NaN and infinity become NULL (no measurement), numpy scalars
become Python's, tuples lists, and text loses what not every database can keep (see `plain.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import JSON, Boolean, Float, Integer, LargeBinary
from sqlmodel import SQLModel

from rlgpt.store.errors import BadRow
from rlgpt.store.plain import plain, text


class Encoded(NamedTuple):
    table: str
    values: dict[str, Any]
    """By column name."""


def encode(row: SQLModel, stamp: Mapping[str, Any] | None = None) -> Encoded:
    """The row's values, those in `stamp` instead of its own. Raises BadRow for what a column cannot hold."""
    return encode_values(type(row), {**vars(row), **(stamp or {})})


def encode_values(model: type[SQLModel], attributes: Mapping[str, Any]) -> Encoded:
    """A row of the model's table from its attributes. To make the SQLModel of a row takes several times longer than to
    encode it, so what is written often, such as events, comes here without one. Defaults of the model do not apply."""
    table, columns = _columns(model)
    values: dict[str, Any] = {}
    for attribute, name, nullable, convert in columns:
        value = attributes.get(attribute)
        try:
            converted = None if value is None else convert(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BadRow(f"{table}.{name} cannot hold {_shown(value)}: {error}") from error
        if converted is None and not nullable:
            raise BadRow(f"{table}.{name} is {'missing' if value is None else repr(value)}")
        values[name] = converted
    return Encoded(table, values)


def _shown(value: Any) -> str:
    try:
        return repr(value)[:200]
    except (ValueError, RecursionError):  # 4,300 digits or a thousand levels
        return f"this {type(value).__name__}"


def _integer(value: Any) -> int:
    number = int(value)
    if number != value:
        raise TypeError("not a whole number")
    if not -(2**63) <= number < 2**63:
        raise OverflowError("beyond 64 bits")
    return number


def _real(value: Any) -> float | None:
    if isinstance(value, str):
        raise TypeError("not a number")
    number = float(value)
    return number if math.isfinite(number) else None


def _truth(value: Any) -> bool:
    if value not in (0, 1):
        raise TypeError("neither true nor false")
    return bool(value)


_CONVERT: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (JSON, plain), (Boolean, _truth), (Integer, _integer), (Float, _real), (LargeBinary, bytes),
)  # fmt: skip


@cache
def _columns(model: type[SQLModel]) -> tuple[str, tuple[tuple[str, str, bool, Callable[[Any], Any]], ...]]:
    mapper = model.__mapper__  # type: ignore[attr-defined]
    columns = []
    for attribute in mapper.column_attrs:
        column = attribute.columns[0]
        convert = next((c for kind, c in _CONVERT if isinstance(column.type, kind)), text)
        columns.append((attribute.key, column.name, bool(column.nullable), convert))
    return mapper.local_table.name, tuple(columns)
