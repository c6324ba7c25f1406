"""The MuJoCo model of the kitchen: stock's own files, compiled once, copied for each env."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.kitchen.names import OBJECTS

OLDEST, NEWEST, ROBOTICS = (3, 5, 0), (3, 10, 0), "1.4.2"
"""As in pyproject.toml: later versions of mujoco break these models, other versions of gymnasium-robotics differ."""
CURE = "pip install 'rlgpt[kitchen]'"
TIMESTEP, SUBSTEPS = 0.005, 16
"""An env step is 16 x 5 = 80 ms, as in stock, whose 40 x 2 ms are 2.5 times as many simulation steps."""
ARM, FINGERS = slice(0, 7), slice(7, 9)
BASE = 1
"""The body that carries the robot."""
# fmt: off
HOME = np.array([
    1.48388023e-01, -1.76848573e00, 1.84390296e00, -2.47685760e00, 2.60252026e-01, 7.12533105e-01, 1.59515394e00,
    0.04, 0.04,
    *([0.0] * 14),
    -2.69397440e-01, 3.50383255e-01, 1.61944683e00, 1.0, 0.0, 0.0, 0.0,
])
# fmt: on
"""`qpos` of stock's start (`init_qpos` of kitchen_env.py): all doors shut, the fingers open, the kettle upright."""


def model_file() -> Path:
    """Path of stock's model file. `gymnasium_robotics` itself is not imported: that takes a second and registers envs.
    Raises ModuleNotFoundError."""
    spec = find_spec("gymnasium_robotics")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'gymnasium_robotics'", name="gymnasium_robotics")
    folder = Path(next(iter(spec.submodule_search_locations)))
    return folder / "envs/assets/kitchen_franka/kitchen_assets/kitchen_env_model.xml"


def check_versions() -> None:
    """Raises ImportError (a sentence) unless mujoco and gymnasium-robotics are those the world was measured with."""
    if not (OLDEST <= _version_numbers(mujoco.__version__) <= NEWEST):
        low, high = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
        raise ImportError(f"it needs mujoco {low} to {high} and finds {mujoco.__version__}: {CURE}")
    path = model_file()
    try:
        installed = version("gymnasium-robotics")
    except PackageNotFoundError:
        installed = "another"
    if installed != ROBOTICS:
        raise ImportError(f"it needs gymnasium-robotics {ROBOTICS} and finds {installed}: {CURE}")
    if not os.access(path, os.R_OK):  # MuJoCo would say so only when the worker makes its first env
        cure = f"pip install --force-reinstall --no-deps gymnasium-robotics=={ROBOTICS}"
        raise ImportError(f"it cannot read {path}: {cure}")


def _version_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdecimal())


@cache
def compile_model() -> mujoco.MjModel:
    """Stock's model without the parts that are only drawn: 0.7 MB instead of 57 MB, the same physics."""
    spec = mujoco.MjSpec.from_file(str(model_file()))
    spec.option.timestep = TIMESTEP
    spec.compiler.discardvisual = True
    return spec.compile()


@cache
def hand_site() -> int:
    return int(compile_model().site("end_effector").id)


@cache
def handle_sites() -> NDArray[np.intp]:
    return np.array([compile_model().site(each.site).id for each in OBJECTS])


@cache
def link_bodies() -> NDArray[np.intp]:
    """The base and the seven links of the arm, for drawings."""
    return np.array([compile_model().body(f"panda0_link{number}").id for number in range(8)])
