"""The named features of the policy's observation, as scalars in [-1, 1]."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.kitchen.model import ARM
from rlgpt.training.worlds.kitchen.names import LEASH, MAX_GAP, MAX_ROLL, MILESTONES, NAMES
from rlgpt.training.worlds.protocol import Feature

_OBJECTS = ", ".join(NAMES)
MAX_QUIET = 40
"""Env steps without novelty at which the feature `quiet` reaches 1. The policy has no memory; without this feature it
cannot tell a hand that is stuck from one whose fingers have just begun to close."""
FEATURES = {
    feature.name: feature
    for feature in (
        Feature("joints", 7, "angles of the arm / 3 rad", -1.0),
        Feature("joint_speeds", 7, "of the arm / 2 rad per s", -1.0),
        Feature("hand", 3, "x, y, z of the hand from (-200, 400, 2200) mm / 0.8 m", -1.0),
        Feature("roll", 1, "of the hand as it was told / 1.6 rad", -1.0),
        Feature("lag", 3, "from the hand to its aim / 6 cm: what it pushes or pulls against", -1.0),
        Feature("fingers", 3, "gap / 8 cm, told to open (1) or close (-1), whether they hold something", -1.0),
        Feature("opened", 7, f"progress to the goal, 1 within its threshold, of {_OBJECTS}"),
        Feature("target", 7, f"one-hot, the object that is to be moved next, of {_OBJECTS}"),
        Feature("target_far", 3, "from the hand to where that object's handle is said to be / 1 m", -1.0),
        Feature("target_near", 3, "the same / 10 cm", -1.0),
        Feature(
            "target_felt", 3,
            "from where its handle was felt, when it was held last, to where it is said to be / 5 cm; 0 before",
            -1.0,
        ),
        Feature("handles_far", 21, f"the same / 1 m for the handles of {_OBJECTS}", -1.0),
        Feature("handles_near", 21, "the same / 10 cm", -1.0),
        Feature("time_left", 1, "share of the horizon that is left"),
        Feature(
            "quiet", 1,
            f"env steps since a milestone, a tenth of progress or a handle 5 cm nearer was new / {MAX_QUIET}",
        ),
        Feature("milestones", len(MILESTONES), "reached in this episode: " + ", ".join(MILESTONES)),
    )
}
DEFAULT = tuple(name for name in FEATURES if not name.startswith("handles_"))
_ENDS = np.cumsum([feature.size for feature in FEATURES.values()]).tolist()
_SLICES = {name: slice(end - feature.size, end) for (name, feature), end in zip(FEATURES.items(), _ENDS, strict=True)}
SIZE: int = _ENDS[-1]
_CENTRE = np.array([-0.2, 0.4, 2.2])
_BITS = np.arange(len(MILESTONES))


def columns(selected: Sequence[str]) -> NDArray[np.intp] | None:
    """Indices of the selected features in the full vector, None for all of them in order.

    Raises ValueError (a sentence) for an unknown or empty selection.
    """
    unknown = [name for name in selected if name not in FEATURES]
    if unknown or not selected:
        raise ValueError(
            f"The kitchen's features are {', '.join(FEATURES)}; not {', '.join(map(repr, unknown)) or 'none'}."
        )
    if tuple(selected) == tuple(FEATURES):
        return None
    return np.concatenate([np.arange(_SLICES[name].start, _SLICES[name].stop) for name in selected])


def write_features(
    row: NDArray[np.float64], data: mujoco.MjData, hand: NDArray[np.float64], aim: NDArray[np.float64], roll: float,
    gap: float, fingers: int, holding: bool, opened: NDArray[np.float64], reported_handles: NDArray[np.float64],
    felt_offsets: NDArray[np.float64], target: int, time_left: float, quiet: int, milestone_bits: int,
) -> None:  # fmt: skip
    """Write all features, not yet clipped, into `row` of shape (SIZE,). Places are in metres, `roll` in radians."""
    offsets = reported_handles - hand
    row[_SLICES["joints"]] = data.qpos[ARM] / 3.0
    row[_SLICES["joint_speeds"]] = data.qvel[ARM] / 2.0
    row[_SLICES["hand"]] = (hand - _CENTRE) / 0.8
    row[_SLICES["roll"]] = roll * 1000 / MAX_ROLL
    row[_SLICES["lag"]] = (aim - hand) * 1000 / LEASH
    row[_SLICES["fingers"]] = gap * 1000 / MAX_GAP, fingers, holding
    row[_SLICES["opened"]] = opened
    row[_SLICES["target"]] = 0.0
    row[_SLICES["target"].start + target] = 1.0
    row[_SLICES["target_far"]] = offsets[target]
    row[_SLICES["target_near"]] = offsets[target] * 10.0
    row[_SLICES["target_felt"]] = felt_offsets[target] * 20.0
    row[_SLICES["handles_far"]] = offsets.ravel()
    row[_SLICES["handles_near"]] = offsets.ravel() * 10.0
    row[_SLICES["time_left"]] = time_left
    row[_SLICES["quiet"]] = quiet / MAX_QUIET
    row[_SLICES["milestones"]] = milestone_bits >> _BITS & 1
