"""A Ray cluster of the tests' own: its nodes are processes of this machine, and each counts as a machine."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import psutil
import pytest

NEEDS_RAY = [
    pytest.mark.ray,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (rlgpt[ray])"),
]
"""Marks of a module whose tests start one."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


class Machines:
    """The head computes nothing, so that every other node may be lost."""

    def __init__(self) -> None:
        os.environ.update(QUIET)
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self, cpus: int = 1, **options: Any) -> Any:
        """Another machine; `options` as of `ray start` (resources, env_vars, ...)."""
        return self._cluster.add_node(num_cpus=cpus, **options)

    def of(self, process: int) -> Any:
        """That on which a worker process of Ray runs: its raylet has started it."""
        raylet = psutil.Process(process).parent()
        return next(node for node in self._cluster.worker_nodes if self.raylet(node) == raylet)

    def raylet(self, machine: Any) -> psutil.Process:
        """The process that the others take for the machine."""
        return psutil.Process(machine.all_processes["raylet"][0].process.pid)

    def lose(self, machine: Any) -> None:
        """As when its plug is pulled."""
        self._cluster.remove_node(machine, allow_graceful=False)

    def remove(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()
