"""The nodes of a cluster, and whether a session would be on each what it would be here.

A node is looked at once, before anything is placed on it. One that does not fit is left out with its sentence; nothing
is downgraded and nothing is installed.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

from rlgpt.store.folder import SESSIONS_STOP_BELOW
from rlgpt.store.home import home
from rlgpt.store.row_types import JsonObject
from rlgpt.training.cluster import connect
from rlgpt.training.cluster.connect import NoCluster, Node, Ray
from rlgpt.training.session.where import cpu, installed

SAME = ("rlgpt", "ray", "torch", "numpy", "numba")
"""Packages whose version must be the one here."""
NONE: JsonObject = MappingProxyType({})
LOOK = 120.0
"""Seconds that the look at a node may take: it imports what a worker imports."""


KEYS = "keys are never sent, so the environment of its `ray start` must have them"


class Found(NamedTuple):
    """What a machine told of itself."""

    python: str
    packages: dict[str, str | None]
    """Versions of `SAME`."""
    cpu: str
    free: int
    """Bytes."""
    unlocked: str
    """Why generated code could not be locked up there, "" where it can."""
    keyless: str = ""
    """Which key of a language model is missing there, "" where none is."""
    worldless: str = ""
    """Why the world cannot be made there, "" where it can."""


class Looked(NamedTuple):
    node: Node
    found: Found | None
    fault: str
    """Why no session is placed there, "" if it fits."""


def examine(world: str, llm: JsonObject) -> Found:
    """This machine. It runs on every node."""
    node_home = home()
    while not node_home.exists():
        node_home = node_home.parent
    unlocked, worldless = _unlocked(world)
    free = shutil.disk_usage(node_home).free
    return Found(minor(), installed(SAME), cpu(), free, unlocked, keyless(llm), worldless)


def keyless(llm: JsonObject) -> str:
    """The sentence of the first key that the models of these settings need and this machine's environment lacks."""
    from rlgpt.agents.endpoint import endpoints
    from rlgpt.agents.errors import MissingKey, Unclear

    if llm.get("kind") != "openai":
        return ""
    try:
        endpoints(llm, os.environ)
    except (MissingKey, Unclear) as error:
        return str(error)
    return ""


def minor() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _unlocked(world: str) -> tuple[str, str]:
    """Why the world's generated code cannot be locked up here, and why the world cannot be made; "" where it can."""
    from rlgpt.training.host.client.errors import HostError
    from rlgpt.training.host.client.open_host import open_host
    from rlgpt.training.worlds import registry

    try:
        open_host(registry.get(world), lanes=1).close()
    except HostError as error:
        return str(error.args[0]), ""
    except registry.UnknownWorld as error:
        return "", str(error.args[0])
    return "", ""


def fault(found: Found) -> str:
    """Why no session of this machine is placed where this was found."""
    if found.python != minor():
        return f"it has Python {found.python}, and here is {minor()}: the same is needed"
    others = [
        f"{name} {found.packages[name] or 'is missing'} (here {here})"
        for name, here in installed(SAME).items()
        if found.packages[name] != here
    ]
    if others:
        return f"other versions: {', '.join(others)}; install the same there"
    if found.worldless:
        return f"it cannot play: {found.worldless}"
    if found.unlocked:
        return f"generated code cannot be locked up there: {found.unlocked}"
    if found.keyless:
        return f"{KEYS}: {found.keyless}"
    if found.free < SESSIONS_STOP_BELOW:
        return f"only {found.free // 1_000_000} MB are free there: make room"
    return ""


class Nodes:
    """Those of one cluster. Raises MissingExtra, NoCluster."""

    def __init__(self, address: str) -> None:
        self.ray: Ray = connect.connect(address)
        self.address = address
        self._fitted: dict[tuple[str, str], Looked] = {}
        self._awaited: dict[tuple[str, str], Any] = {}
        """Answers that have not come yet: a node that hangs has one question of ours, however often it is looked at."""
        self._looking = threading.Lock()

    def fitting(self, world: str, llm: JsonObject = NONE) -> list[Node]:
        """Raises NoCluster if none of those that compute fits."""
        looked = self.look(world, llm)
        fit = [one.node for one in looked if not one.fault]
        if not fit:
            faults = "; ".join(f"{one.node.host}: {one.fault}" for one in looked) or "it has no node with a CPU to lend"
            raise NoCluster(f"no node of the cluster at {self.address} can run this session: {faults}")
        return fit

    def look(self, world: str, llm: JsonObject = NONE) -> list[Looked]:
        """At every node that computes. One that fitted is not asked again; one that was silent is waited for again only
        where no other fits."""
        query = json.dumps([world, dict(llm)], sort_keys=True)
        with self._looking:
            nodes = self._computing()
            silent = {node.id for node in nodes if (node.id, query) in self._awaited}
            for node in nodes:
                if (node.id, query) not in self._fitted and node.id not in silent:
                    self._awaited[node.id, query] = self._ask(node, examine, world, dict(llm))
            until = time.monotonic() + LOOK
            looked: dict[str, Looked] = {}
            for node in sorted(nodes, key=lambda node: node.id in silent):
                one = self._fitted.get((node.id, query))
                if one is None:
                    fits = any(not other.fault for other in looked.values())
                    one = self._judged(node, query, time.monotonic() if fits and node.id in silent else until)
                looked[node.id] = one
            self._fitted |= {(one.node.id, query): one for one in looked.values() if not one.fault}
            return [looked[node.id] for node in nodes]

    def need_keys(self, llm: JsonObject) -> None:
        """Looks at nothing but the keys, which is soon done. Raises NoCluster if no node has those of these models."""
        if llm.get("kind") != "openai":
            return
        missing = []
        for answer in [self._ask(node, keyless, dict(llm)) for node in self._computing()]:
            try:
                missing.append(self.ray.get(answer, timeout=LOOK))
            except self.ray.exceptions.RayError:  # why it cannot be asked is told when the session is placed
                missing.append("")
        if missing and all(missing):
            raise NoCluster(f"no node of the cluster at {self.address} has the key: {KEYS}; {missing[0]}")

    def _computing(self) -> list[Node]:
        return [node for node in connect.nodes(self.ray) if node.resources.get("CPU", 0) >= 1]

    def _ask(self, node: Node, question: Callable[..., Any], *words: object) -> Any:
        here = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
        return self.ray.remote(question).options(num_cpus=0, max_retries=0, scheduling_strategy=here).remote(*words)

    def _judged(self, node: Node, query: str, until: float) -> Looked:
        answer, errors = self._awaited[node.id, query], self.ray.exceptions
        answered, _ = self.ray.wait([answer], timeout=max(1.0, until - time.monotonic()))
        if not answered:
            return Looked(node, None, f"it did not answer within {LOOK:.0f} seconds")
        del self._awaited[node.id, query]
        try:
            found = self.ray.get(answer)
        except errors.RayTaskError as error:
            return Looked(node, None, f"rlgpt does not run there ({error.cause!r:.200}): install the one that is here")
        except errors.RayError as error:
            return Looked(node, None, f"it could not be looked at ({type(error).__name__})")
        return Looked(node, found, fault(found))

    def cpus(self, world: str) -> int:
        """Of the nodes that fit: how many sessions run at once."""
        return int(sum(node.resources["CPU"] for node in self.fitting(world)))


def describe_nodes(address: str, llm: JsonObject = NONE, world: str = "crafter") -> dict[str, Any]:
    """{address, nodes: [...]} for the operator; the nodes that compute."""
    nodes = Nodes(address)
    return {"address": address, "nodes": [_describe(looked) for looked in nodes.look(world, llm)]}


def _describe(looked: Looked) -> dict[str, Any]:
    resources, found = looked.node.resources, looked.found
    machine: dict[str, Any] = dict.fromkeys(("python", "packages", "cpu", "free"))
    if found is not None:
        machine = {name: getattr(found, name) for name in machine}
    counted = {"cpus": int(resources.get("CPU", 0)), "gpus": int(resources.get("GPU", 0))}
    return {"host": looked.node.host, **counted, **machine, "fault": looked.fault}
