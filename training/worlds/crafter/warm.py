"""`python -m rlgpt.training.worlds.crafter.warm`: compile the rules once, so that no session waits for it."""

from __future__ import annotations

import time

import numpy as np

from rlgpt.training.worlds.crafter import compiled, senses
from rlgpt.training.worlds.crafter.render import Painter
from rlgpt.training.worlds.crafter.simulation import Simulation


def warm() -> float:
    """Compile or load every entry point, and return the seconds that took: about 30 the first time."""
    begin = time.perf_counter()
    simulation = Simulation()
    simulation.reset(0, 10, -1)
    simulation.step(0)
    senses.describe(simulation.state, simulation.memory, simulation.senses, np.zeros(senses.FEATURES_SIZE, np.float32))
    senses.progress_key(simulation.state, simulation.senses)
    Painter(simulation).paint()
    return time.perf_counter() - begin


if __name__ == "__main__":
    if compiled.COMPILED:
        print(f"Crafter's rules are compiled ({warm():.1f} s), in {compiled.cache_folder()}.")
    else:
        print("numba is not available: Crafter runs uncompiled, about a hundred times slower.")
