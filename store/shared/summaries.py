"""A session at a glance, as its keeper tells it to a shared store: a summary without what never changes.

The settings are two thirds of a summary. They stand in the session's own row, so a list reads them once.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_type_hints

from rlgpt.store.catalog import Summary, require_shown
from rlgpt.store.row_types import JsonObject
from rlgpt.store.row_values import fits

_TYPES = {name: hint for name, hint in get_type_hints(Summary).items() if name not in ("id", "settings", "tags")}


def text_of(summary: Summary) -> str:
    """As JSON."""
    tree = dataclasses.asdict(dataclasses.replace(summary, settings={}))
    del tree["settings"]
    return json.dumps(tree)


def summary_of(ident: str, fields: Any, settings: JsonObject, place: str) -> Summary:
    """As any rlgpt, an older or a newer one, told it, and as whoever may write to the store can change it: one that
    cannot be shown takes no other one off the list. Whether a worker lives is not told."""
    try:
        if not isinstance(fields, dict):
            raise ValueError("its summary cannot be")
        readable = {name: value for name, value in fields.items() if name in _TYPES}
        if wrong := [name for name, value in readable.items() if not fits(value, _TYPES[name])]:
            raise ValueError(f"its {min(wrong)} cannot be {readable[min(wrong)]!r:.80}")
        tags = fields.get("tags", [])
        if not isinstance(tags, list):
            raise ValueError("its tags cannot be")
        fixed = {"tags": tuple(map(str, tags)), "settings": settings, "alive": False, "store": place}
        return require_shown(Summary(ident, **{**readable, **fixed}))
    except ValueError as error:
        return Summary(ident, fault=f"session {ident} is damaged: {error}", store=place)
