"""What requests are made of, as one hash: by it a replay knows whether its questions can be the recorded ones."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files

from rlgpt.store.row_types import JsonObject

EVIDENCE = 3
"""To be raised when an evaluation or a trial keeps other evidence for the same episodes (`training/rollouts`)."""
_MODULES = (
    "asking", "memory", "planner", "slow", "fast", "critic", "contracts", "schema", "context", "linking", "shortening",
)  # fmt: skip
"""Of this package: what they say of a session stands in the requests."""


def wording(sheet: JsonObject) -> str:
    """Of the templates, the modules that fill them, and the world sheet of the session's task."""
    digest = hashlib.blake2b(digest_size=16)
    templates = sorted((part for part in files("rlgpt.prompts").iterdir() if part.name.endswith(".md")), key=str)
    modules = [files("rlgpt.agents").joinpath(f"{name}.py") for name in _MODULES]
    store_modules = [files("rlgpt.store").joinpath(f"{name}.py") for name in ("failures", "training_series")]
    for part in (*templates, *modules, *store_modules):
        digest.update(part.read_bytes())
    digest.update(json.dumps([EVIDENCE, sheet], sort_keys=True, default=str).encode())
    return digest.hexdigest()
