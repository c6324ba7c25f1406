"""Where a transaction ends, told by its rows: a copy or a repair must not leave half of one. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

_LOOKED_AT = {"code_version": "admitted", "evaluation": "episodes", "metric": "episodes"}


def first_rows(
    rows: Mapping[str, list[tuple[Any, ...]]], columns: Mapping[str, Sequence[str]], limit: int
) -> tuple[dict[str, list[tuple[Any, ...]]], int] | None:
    """Of rows by table, more than `limit` of each where there are more: about the first `limit` of all and the number
    of the last. None where a transaction is longer than that."""
    places = {name: columns[name].index("seq") for name in rows}
    order = [(row[places[name]], name, row) for name, table_rows in rows.items() for row in table_rows]
    order.sort(key=itemgetter(0))
    if len(order) > limit:
        del order[limit:]
        complete = whole_transactions((name, _values(columns[name], name, row)) for _, name, row in order)
        if not complete:
            return None
        del order[complete:]
    last = order[-1][0] if order else 0
    upto = {name: [row for row in table_rows if row[places[name]] <= last] for name, table_rows in rows.items()}
    return {name: table_rows for name, table_rows in upto.items() if table_rows}, last


def _values(columns: Sequence[str], table: str, row: tuple[Any, ...]) -> dict[str, Any]:
    name = _LOOKED_AT.get(table)
    return {name: row[columns.index(name)]} if name else {}


def whole_transactions(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> int:
    """How many of the rows, (table, values) in order, are left when a transaction that lacks its end is taken away: a
    plan without its sub-actions, a refused version without its trial, an evaluation without all its episodes, a metric
    without its checkpoint."""
    opened, episodes, count = -1, 0, 0
    for place, (table, values) in enumerate(rows):
        count = place + 1
        if table == "plan" or (table == "code_version" and not values["admitted"]):
            opened = place
        elif table in ("evaluation", "metric"):
            opened, episodes = place, int(values["episodes"])
        elif table == "episode":
            episodes -= 1
            opened = opened if episodes > 0 else -1
        elif table not in ("sub_action", "frame"):
            opened = -1
    return count if opened < 0 else opened
