"""A session at a glance, as its keeper tells it to a shared store: a summary without what never changes.

The settings are two thirds of a summary. They stand in the session's own row, so a list reads them once.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from rlgpt.store.catalog import Summary, require_shown
from rlgpt.store.row_types import JsonObject

_NAMES = frozenset(field.name for field in dataclasses.fields(Summary))


def text_of(summary: Summary) -> str:
    """As JSON."""
    tree = dataclasses.asdict(dataclasses.replace(summary, settings={}))
    del tree["settings"]
    return json.dumps(tree)


def summary_of(fields: Mapping[str, Any], settings: JsonObject, place: str) -> Summary:
    """As any rlgpt, an older or a newer one, told it. Whether a worker lives is not told."""
    readable = {name: value for name, value in fields.items() if name in _NAMES}
    fixed = {"tags": tuple(readable.get("tags", ())), "settings": settings, "alive": False, "store": place}
    summary = Summary(**{**readable, **fixed})
    try:
        return require_shown(summary)
    except ValueError as error:
        return Summary(summary.id, fault=f"session {summary.id} is damaged: {error}", store=place)
