"""The recipes of Crafter's own `data.yaml`.

The file is read without importing crafter, because that import takes a second to compile what only playing needs.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


def _read() -> dict[str, Any]:
    spec = find_spec("crafter")
    if spec is None or spec.origin is None:
        raise ImportError("crafter is not installed")
    text = (Path(spec.origin).parent / "data.yaml").read_text(encoding="utf-8")
    return dict(YAML(typ="safe", pure=True).load(text))


_DATA = _read()
COLLECT: dict[str, Any] = _DATA["collect"]
PLACE: dict[str, Any] = _DATA["place"]
MAKE: dict[str, Any] = _DATA["make"]
