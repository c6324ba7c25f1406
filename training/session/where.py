"""Where a session computes: told when it starts and whenever it goes on, since the last bits of its results may depend
on it."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import re
import socket
import sys
from collections.abc import Iterable

from rlgpt.store.atomic import private_folder, write_bytes
from rlgpt.store.errors import BadPlace
from rlgpt.store.events import Where
from rlgpt.store.home import cache
from rlgpt.store.limits import exact
from rlgpt.store.row_types import JsonObject

PACKAGES = (
    "rlgpt", "torch", "stable-baselines3", "numpy", "opensimplex", "numba", "crafter", "gymnasium", "openai",
)  # fmt: skip
SIMULATORS = ("mujoco",)
"""Packages, named as their modules, that compute what happens in a world; another version of one computes it otherwise.
They are told by a process that has imported them, since the worlds of other sessions do without."""


def where() -> Where:
    return {"node": socket.gethostname(), "cpu": cpu(), "versions": versions()}


def versions() -> JsonObject:
    packages = (*PACKAGES, *(name for name in SIMULATORS if name in sys.modules))
    return {"python": platform.python_version(), "machine": platform.machine(), **installed(packages)}


def other_simulator(before: Where, here: Where) -> str:
    """The sentence on the simulators whose version differs between two places, "" where none is known to."""
    then, now = (place["versions"] for place in (before, here))
    named = [name for name in SIMULATORS if then.get(name) and now.get(name) and then[name] != now[name]]
    return ", ".join(f"continued with {name} {now[name]}, before it was {then[name]}" for name in named)


def installed(packages: Iterable[str]) -> dict[str, str | None]:
    """The version of each package, None where it is missing."""
    versions_by_name: dict[str, str | None] = dict.fromkeys(packages)
    for package in versions_by_name:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions_by_name[package] = importlib.metadata.version(package)
    return versions_by_name


def cpu() -> str:
    """numpy and torch choose kernels by vendor and instruction set, and their last bits differ. `exact` where they are
    told which to take (`limits.exact`)."""
    told = " exact" if exact(os.environ) else ""
    return f"{platform.machine()} {_of_processor('vendor_id')} {_instructions()}{told}"


def _instructions() -> str:
    """The instruction set that torch takes, as it calls it. It takes seconds to import, and a session may never
    train: what it said of this processor is kept beside the compiled rules."""
    asked = (
        importlib.metadata.version("torch"),
        os.environ.get("ATEN_CPU_CAPABILITY", ""),
        platform.machine(),
        _of_processor("flags", "Features"),
    )
    name = hashlib.blake2b(repr(asked).encode(), digest_size=8).hexdigest()
    with contextlib.suppress(OSError, UnicodeDecodeError, BadPlace):  # BadPlace: a node may have no home folder
        if re.fullmatch(r"[\w ]+", word := (cache() / "instructions" / name).read_text()):
            return word
    import torch

    word = str(torch.backends.cpu.get_cpu_capability())
    with contextlib.suppress(OSError, BadPlace):
        private_folder(cache() / "instructions")
        write_bytes(cache() / "instructions" / name, word.encode())
    return word


def _of_processor(*fields: str) -> str:
    """The first of these that is told of the first one, which stands for all."""
    try:
        with open("/proc/cpuinfo") as lines:  # noqa: PTH123 - a line at a time
            return next(line.partition(":")[2].strip() for line in lines if line.startswith(fields))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
