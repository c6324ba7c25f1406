"""How much of an episode's world the agent saw, and what there was to find. It is reported of lost episodes, so that a
reader can tell a search that was too short from a goal that was out of reach."""

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
    memory_of_map = memory[names.REACH_Y : names.REACH_Y + names.AREA, names.REACH_X : names.REACH_X + names.AREA]
    parts = [f"{np.count_nonzero(memory_of_map)} of {memory_of_map.size} cells seen"]
    for name in SOUGHT:
        code = names.MATERIALS.index(name)
        cells = np.argwhere(material == code)
        seen_count = int((memory_of_map == code).sum())
        if not len(cells):
            parts.append(f"no {name} anywhere")
        elif seen_count:
            parts.append(f"{name} {seen_count} of {len(cells)}")
        else:
            nearest = int(np.abs(cells - START).sum(axis=1).min())
            parts.append(f"{name} 0 of {len(cells)}, the nearest {nearest} cells from the start")
    return "; ".join(parts)
