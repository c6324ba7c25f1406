"""A check that the installed numpy and opensimplex make the same worlds as those that results were measured on."""

from __future__ import annotations

import hashlib

from rlgpt.training.worlds.crafter import layout
from rlgpt.training.worlds.crafter.simulation import Simulation
from rlgpt.training.worlds.protocol import WorldFailed

RECORDED = "1c6848cbb1b27099"
"""`fingerprint()` under numpy 2.4 and opensimplex 0.4.5.1."""


class DifferentWorlds(WorldFailed):
    """The sentence for the operator is the argument."""


def fingerprint() -> str:
    """Hash of the map, the first creatures and the random stream of two seeds."""
    digest = hashlib.blake2b(digest_size=8)
    simulation = Simulation()
    for seed in (0, 1):
        simulation.reset(seed, 500, -1)
        rows = int(simulation.state[layout.ROWS])
        for part in (simulation.material, simulation.objects[:rows], simulation.state):
            digest.update(part.tobytes())
    return digest.hexdigest()


def check_fingerprint() -> None:
    """Raises `DifferentWorlds` when the worlds are not the recorded ones."""
    actual = fingerprint()
    if actual != RECORDED:
        raise DifferentWorlds(
            f"Crafter makes other worlds here ({actual} instead of {RECORDED}): install the numpy and "
            "opensimplex versions of constraints.txt."
        )
