"""Measures what a session uses of this machine now: processes, GPU, disk. Nothing of it is stored."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlgpt.store.errors import BadPlace
from rlgpt.store.home import home
from rlgpt.store.lease import Lease


class Meter:
    """Measures process trees. CPU use is that since the previous call; the first call for a process gives 0."""

    def __init__(self) -> None:
        self._process_of_pid: dict[int, Any] = {}

    def usage(self, pid: int) -> Mapping[str, Any]:
        """cpu (cores), memory (bytes), cores, memory_total, processes, gpus of the process tree of `pid`."""
        import psutil

        try:
            root = psutil.Process(pid)
            tree = [root, *root.children(recursive=True)] if pid else []
        except (psutil.Error, OSError):
            return {}
        self._process_of_pid = {p.pid: self._process_of_pid.get(p.pid, p) for p in tree}
        cpu = memory = 0.0
        for process in self._process_of_pid.values():
            with contextlib.suppress(psutil.Error):
                cpu += process.cpu_percent(None) / 100
                memory += process.memory_info().rss
        return {
            "cpu": cpu,
            "memory": memory,
            "cores": psutil.cpu_count() or 1,
            "memory_total": psutil.virtual_memory().total,
            "processes": len(self._process_of_pid),
            "gpus": gpus(),
        }


def gpus() -> list[dict[str, float]]:
    """[{load in percent, memory, memory_total in bytes}], [] without an NVIDIA driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    words = [program, "--query-gpu=utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits"]
    try:
        result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=5, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return []
    cards = []
    for row in result.stdout.splitlines() if result.returncode == 0 else []:
        with contextlib.suppress(ValueError):
            load, used, total = (float(cell) for cell in row.split(","))
            cards.append({"load": load, "memory": used * 2**20, "memory_total": total * 2**20})
    return cards


def sizes(folder: Path) -> dict[str, float]:
    """store, artifacts, used, free, total: bytes."""
    store = artifacts = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file():
                store += path.stat().st_size
                artifacts += path.stat().st_size if path.parent.name == "artifacts" else 0
    disk = shutil.disk_usage(folder)
    return {"store": store, "artifacts": artifacts, "used": disk.used, "free": disk.free, "total": disk.total}


def training_slots() -> int:
    """How many sessions hold a training slot of this store, of those that this user may look at."""
    slots, taken = home() / "slots", 0
    for lock in slots.glob("slot-*.lock") if slots.is_dir() else ():
        with contextlib.suppress(BadPlace):  # of root, after `sudo rlgpt run`: no reason to list nothing
            taken += Lease.held(slots, lock.name)
    return taken
