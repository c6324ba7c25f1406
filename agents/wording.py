"""What requests are made of, as one hash: by it a replay knows whether its questions can be the recorded ones."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files

from rlgpt.store.row_types import JsonObject

_MODULES = ("asking", "memory", "planner", "slow", "fast", "critic", "contracts", "schema", "context")
"""Of this package: what they say of a session stands in the requests."""


def wording(sheet: JsonObject) -> str:
    """Of the templates, the modules that fill them, and the world sheet of the session's task."""
    digest = hashlib.blake2b(digest_size=16)
    templates = sorted((part for part in files("rlgpt.prompts").iterdir() if part.name.endswith(".md")), key=str)
    for part in (*templates, *(files("rlgpt.agents").joinpath(f"{name}.py") for name in _MODULES)):
        digest.update(part.read_bytes())
    digest.update(json.dumps(sheet, sort_keys=True, default=str).encode())
    return digest.hexdigest()
