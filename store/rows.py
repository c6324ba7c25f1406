"""From a typed row to the plain values that are stored, folded and exported: the same ones in all three.

What a column gives back is what went in, so NaN and infinity become NULL (no measurement), numpy scalars
become Python's, tuples lists, and text that is no Unicode loses what is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import JSON, Boolean, Float, Integer, LargeBinary
from sqlmodel import SQLModel

from rlgpt.store.errors import BadRow


class Encoded(NamedTuple):
    table: str
    values: dict[str, Any]
    """By column name."""


def encode(row: SQLModel, stamp: Mapping[str, Any] | None = None) -> Encoded:
    """The row's values, those in `stamp` instead of its own. Raises BadRow for what a column cannot hold."""
    stamp = stamp or {}
    table, columns = _columns(type(row))
    values: dict[str, Any] = {}
    for attribute, name, nullable, convert in columns:
        value = stamp[attribute] if attribute in stamp else getattr(row, attribute, None)
        try:
            plain = None if value is None else convert(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadRow(f"{table}.{name} cannot hold {value!r:.200}: {error}") from error
        if plain is None and not nullable:
            raise BadRow(f"{table}.{name} is {'missing' if value is None else repr(value)}")
        values[name] = plain
    return Encoded(table, values)


def plain(value: Any) -> Any:
    """`value` as JSON gives it back. Raises TypeError for what JSON cannot hold."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_key(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [plain(v) for v in value]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # a numpy scalar
        return plain(value.item())
    raise TypeError(f"a {type(value).__name__} is not plain data")


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode()
    return str(value)


def _key(key: Any) -> str:
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise TypeError(f"a key must be a text, not {key!r}")
    return text(key) if isinstance(key, str) else str(int(key))


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
    found = []
    for attribute in mapper.column_attrs:
        column = attribute.columns[0]
        convert = next((c for kind, c in _CONVERT if isinstance(column.type, kind)), text)
        found.append((attribute.key, column.name, bool(column.nullable), convert))
    return mapper.local_table.name, tuple(found)
