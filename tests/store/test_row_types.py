"""The rows that are read have the columns and the types of the tables that are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, Integer, LargeBinary
from sqlmodel import SQLModel

from rlgpt.store import row_types, tables
from rlgpt.store.measured import Measured
from rlgpt.store.row_values import fits

TABLES = {str(table.__tablename__): table for table in tables.CONTENT}
KINDS = ((JSON, (dict, list)), (Boolean, (bool,)), (Integer, (int,)), (BigInteger, (int,)), (Float, (float,)))


def kinds_of_column(column: Column[Any]) -> set[type]:
    found = next((kinds for sql, kinds in KINDS if isinstance(column.type, sql)), None)
    found = found or ((bytes,) if isinstance(column.type, LargeBinary) else (str,))
    return {*found, NoneType} if column.nullable else set(found)


def kinds_of_hint(hint: Any) -> set[type]:
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return {dict if is_typeddict(part) else JSON_KINDS.get(get_origin(part), part) for part in parts}


JSON_KINDS = {Mapping: dict, Sequence: list}


def test_every_table_has_its_type_of_row() -> None:
    assert set(row_types.ROWS) == set(TABLES)


@pytest.mark.parametrize("table", [*TABLES, "command"])
def test_a_row_has_the_columns_of_its_table_with_their_types(table: str) -> None:
    model: type[SQLModel] = TABLES.get(table, tables.Command)
    columns = {column.name: column for column in SQLModel.metadata.tables[table].columns}
    hints = get_type_hints(row_types.ROWS.get(table, row_types.CommandRow))
    assert set(hints) - {"rowid"} == set(columns), model
    for name, column in columns.items():
        assert kinds_of_hint(hints[name]) <= kinds_of_column(column), name
        assert (NoneType in kinds_of_hint(hints[name])) == bool(column.nullable), name


def test_a_score_that_was_rounded_to_a_little_more_than_1_is_a_result() -> None:
    assert fits(1.0000000000000002, row_types.Share) and not fits(1.01, row_types.Share)
    assert Measured(0, 20, 1.0000000000000002).interval[1] == 1.0
