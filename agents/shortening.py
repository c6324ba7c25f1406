"""What a model wrote, made short enough for a later request. The rows keep all of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

CUT = "[... shortened ...]"


def shortened(value: Any, most: int, but: Collection[str] = ()) -> Any:
    """Plain data in which no text is longer than `most` characters: of a longer one the two ends stand. What is under
    the keys `but` stays as it is."""
    if isinstance(value, str):
        return value if len(value) <= most else _ends_of(value, most)
    if isinstance(value, Mapping):
        return {key: part if key in but else shortened(part, most, but) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(part, most, but) for part in value]
    return value


def _ends_of(text: str, most: int) -> str:
    half = max(0, most - len(CUT) - 2) // 2
    return f"{text[:half]} {CUT} {text[len(text) - half :]}"
