"""The row of an RL configuration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rlgpt.store import tables
from rlgpt.store.history import IterationState


def config_row(
    iteration: IterationState, revision: int, author: str, config: Mapping[str, Any], note: str
) -> tables.RlConfig:
    text = json.dumps(config, sort_keys=True)
    return tables.RlConfig(
        sub_task=iteration.sub_task,
        iteration=iteration.number,
        revision=revision,
        author=author,
        config=dict(config),
        config_hash=hashlib.blake2b(text.encode(), digest_size=8).hexdigest(),
        note=note,
    )
