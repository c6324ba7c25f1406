"""Where a session computes: told when it starts and whenever it goes on, since the last bits of its results may depend
on it."""

from __future__ import annotations

import platform
import socket

from rlgpt.store.events import Where
from rlgpt.training.session.creation import versions


def where() -> Where:
    return {"node": socket.gethostname(), "cpu": cpu(), "versions": versions()}


def cpu() -> str:
    """numpy and torch choose kernels by vendor and instruction set, and their last bits differ."""
    import torch

    return f"{platform.machine()} {_vendor()} {torch.backends.cpu.get_cpu_capability()}"


def _vendor() -> str:
    try:
        with open("/proc/cpuinfo") as told:  # noqa: PTH123 - a line at a time
            return next(line.partition(":")[2].strip() for line in told if line.startswith("vendor_id"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
