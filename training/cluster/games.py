"""Games on the nodes of a cluster: each is an actor, which ends with the worker whose game it is."""

from __future__ import annotations

import os
import signal
from collections import deque
from contextlib import suppress
from importlib import import_module
from itertools import count
from typing import Any

from rlgpt.training.cluster import connect, nodes
from rlgpt.training.cluster.connect import NoCluster, Node, Ray
from rlgpt.training.worlds.away.channel import Channel, GameLost
from rlgpt.training.worlds.away.world import LOCAL, LocalGames, check_slow, played_at
from rlgpt.training.worlds.protocol import World

KEPT = ("PYTHONHASHSEED",)
"""Variables that a game has from the worker, because what it computes may depend on them."""


class Host:
    """What an actor is: the game's side of a channel. `side` names a class with a method `answer`."""

    def __init__(self, side: str) -> None:
        module, _, name = side.partition(":")
        self._side = getattr(import_module(module), name)()

    def answer(self, message: bytes) -> bytes:
        answer: bytes = self._side.answer(message)
        return answer

    def place(self) -> str:
        import ray

        return f"node {ray.util.get_node_ip_address()}, process {os.getpid()}"


class ClusterGames:
    """See `away.world.Games`: on those nodes that fit, in turn. Raises `NoCluster`, `MissingExtra`."""

    def __init__(self, address: str, world: str) -> None:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self._nodes = nodes.Nodes(address)
        for number, handler in handlers.items():  # Ray takes them
            signal.signal(number, handler)
        self._address, self._world = address, world
        self._turns = count()

    def open(self, side: str, resource: str = "") -> Channel:
        """A game takes no CPU by Ray's count: how many lanes a session has must not depend on the cluster, so its games
        share what there is. It does take one of its `resource`."""
        try:
            fitting = self._fitting(resource)
        except NoCluster as error:
            raise GameLost(str(error)) from error
        chosen = fitting[next(self._turns) % len(fitting)]
        return Actor(self._nodes.ray, side, chosen, {resource: 1} if resource else {})

    def room(self, resource: str) -> int:
        """Raises `NoCluster` if there is none."""
        return int(sum(node.resources.get(resource, 0) for node in self._fitting(resource)))

    def _fitting(self, resource: str) -> list[Node]:
        """No generated code runs where a game is, so it need not be locked up there."""
        faults: list[str] = []
        fitting: list[Node] = []
        for node, look, fault in self._nodes.look(self._world):
            why = fault if look is None else nodes.fault(look._replace(unlocked=""))
            if not why and resource and node.resources.get(resource, 0) < 1:
                why = f"it offers no {resource} (ray start --resources '{{\"{resource}\": 4}}')"
            if why:
                faults.append(f"{node.host}: {why}")
            else:
                fitting.append(node)
        if not fitting:
            reasons = "; ".join(faults) or "it has no node with a CPU"
            raise NoCluster(f"no node of the cluster at {self._address} can play the games of {self._world}: {reasons}")
        return fitting


class Actor:
    """See `away.channel.Channel`."""

    def __init__(self, ray: Ray, side: str, node: Node, resources: dict[str, float]) -> None:
        self._ray = ray
        # Ray puts an actor that takes no CPU on any node, asked or not, unless the affinity is hard:
        # https://github.com/ray-project/ray/pull/25344
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
        variables = {name: os.environ[name] for name in KEPT if name in os.environ}
        options = {
            "num_cpus": 0, "resources": resources, "scheduling_strategy": strategy, "max_restarts": 0,
            "max_task_retries": 0, "runtime_env": {"env_vars": variables},
        }  # fmt: skip
        self._actor = ray.remote(Host).options(**options).remote(side)
        self._answers: deque[Any] = deque()
        self._place = self._actor.place.remote()
        self._node = node.host

    @property
    def place(self) -> str:
        with suppress(self._ray.exceptions.RayError):
            return str(self._ray.get(self._place, timeout=0))
        return f"node {self._node}"

    def send(self, message: bytes) -> None:
        self._answers.append(self._actor.answer.remote(message))

    def receive(self, timeout: float) -> bytes:
        errors = self._ray.exceptions
        try:
            return bytes(self._ray.get(self._answers.popleft(), timeout=timeout))
        except errors.GetTimeoutError as error:
            raise GameLost(f"{self.place} did not answer within {timeout:g} s") from error
        except errors.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise GameLost(f"{self.place} is gone ({type(error).__name__}: {lines[0]:.200})") from error

    def end(self) -> None:
        if self._ray.is_initialized():  # else `kill` would start a cluster of its own (ray's auto_init_hook)
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(self._actor)


def check_place(world: World, place: str) -> None:
    """Raises `WorldFailed`, `MissingExtra` or `NoCluster` where the world's games cannot be played there, whether or
    not anybody answers."""
    if place:
        check_slow(world, place)
    if place not in ("", LOCAL):
        connect.checked(place)
        connect.need_extra()


def placed(world: World, name: str, place: str) -> World:
    """The world, which the registry calls `name`, with its games at `place`; as it is where that is empty. Raises as
    `check_place` does."""
    check_place(world, place)
    if not place:
        return world
    return played_at(world, name, LocalGames() if place == LOCAL else ClusterGames(place, name))
