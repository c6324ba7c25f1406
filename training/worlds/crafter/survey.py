"""What of an episode's world was seen, and what there was: for lost episodes, whose search may have been too short or
without hope."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.crafter import names

SOUGHT = ("water", "tree", "coal", "iron", "diamond")
"""Materials that plans look for."""
START = names.AREA // 2
"""Column and row that every episode starts in."""


def survey(material: NDArray[np.uint8], memory: NDArray[np.uint8]) -> str:
    """See `optional_parts.Surveys`. `material` indexed [x, y], `memory` as in `names`, both of the episode's end."""
    seen = memory[names.REACH_Y : names.REACH_Y + names.AREA, names.REACH_X : names.REACH_X + names.AREA]
    parts = [f"{np.count_nonzero(seen)} of {seen.size} cells seen"]
    for name in SOUGHT:
        code = names.MATERIALS.index(name)
        there = np.argwhere(material == code)
        found = int((seen == code).sum())
        if not len(there):
            parts.append(f"no {name} anywhere")
        elif found:
            parts.append(f"{name} {found} of {len(there)}")
        else:
            nearest = int(np.abs(there - START).sum(axis=1).min())
            parts.append(f"{name} 0 of {len(there)}, the nearest {nearest} cells from the start")
    return "; ".join(parts)
