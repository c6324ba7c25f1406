"""Opens a host: checks which modes this machine can give and starts the process behind it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import time
from pathlib import Path
from typing import get_args

import psutil

from rlgpt.training.host.api import Host, Mode
from rlgpt.training.host.client.action_host import ActionHost
from rlgpt.training.host.client.errors import ModeUnavailable
from rlgpt.training.host.client.process import HostDied, HostProcess
from rlgpt.training.host.client.spawner import CHILD
from rlgpt.training.host.sandbox.engine import Engine
from rlgpt.training.host.wire import UNLOCKED, Writer
from rlgpt.training.worlds.protocol import World


def open_host(world: World, *, lanes: int, mode: Mode = "locked", seed: int = 0, allow_process: bool = False) -> Host:
    """A host that is ready and locked as `mode` says; never less. Raises ModeUnavailable.

    `process` (no operating-system lock) needs `allow_process`, which only an explicit flag sets.
    """
    if mode not in get_args(Mode):
        raise ModeUnavailable(f"there is no host mode {mode!r}; choose one of {', '.join(get_args(Mode))}")
    if mode == "process" and not allow_process:
        raise ModeUnavailable("mode process runs generated code without an operating-system lock; allow it explicitly")
    if mode == "trusted":
        return ActionHost(mode, lanes, world.native_action_size, InProcess(world, lanes, seed))
    if mode == "locked" and not sys.platform.startswith("linux"):
        raise ModeUnavailable(f"mode locked needs Linux, this is {sys.platform}; use process with its explicit flag")
    return spawned_host(world, lanes, mode, seed, CHILD)


def spawned_host(world: World, lanes: int, mode: Mode, seed: int, script: Path) -> ActionHost:
    """A host in its own process, which is started by `script`."""
    return ActionHost(mode, lanes, world.native_action_size, Spawning(hello(world, lanes, mode, seed), script))


def hello(world: World, lanes: int, mode: Mode, seed: int) -> bytes:
    """First message to a process: its settings, and where the world's host-side module lies."""
    name = world.host_module
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModeUnavailable(f"the host-side module {name} of world {world.name} cannot be found")
    parts = name.split(".")
    packages = [".".join(parts[:size]) for size in range(1, len(parts))]
    out = Writer().number(lanes).number(seed).text(mode).text(name).text(spec.origin).number(len(packages))
    for package in packages:
        package_spec = importlib.util.find_spec(package)
        paths = list(package_spec.submodule_search_locations or ()) if package_spec is not None else []
        out.text(package).number(len(paths))
        for path in paths:
            out.text(path)
    return out.done()


class Spawning:
    """Hands out processes that are ready and keeps the next one warm."""

    def __init__(self, hello: bytes, script: Path) -> None:
        self._hello = hello
        self._script = script
        self._next_process: HostProcess | None = None

    def take(self) -> HostProcess:
        """Raises HostDied if the process did not become ready, ModeUnavailable if it could not be locked."""
        process, self._next_process = self._next_process or HostProcess(self._hello, self._script), None
        process.ready()
        if UNLOCKED in process.enforced:
            process.close()
            raise ModeUnavailable(f"mode locked cannot be had here: {process.enforced[UNLOCKED]}")
        with contextlib.suppress(HostDied):  # the machine is full; the next one is started when it is needed
            self._next_process = HostProcess(self._hello, self._script)
        return process

    def close(self) -> None:
        if self._next_process is not None:
            self._next_process.close()


class InProcess:
    """The engine in the trusted side's own process: for hand-written code only."""

    def __init__(self, world: World, lanes: int, seed: int) -> None:
        self.enforced = {
            "language": "enforced",
            "process": "not enforced: mode trusted runs in the worker's process",
        }
        self._body = b""
        self._seconds = 0.0
        self._page = bytearray(8)
        self._engine = Engine(importlib.import_module(world.host_module), lanes, seed, self._page)

    def take(self) -> InProcess:
        return self

    def exchange(self, kind: int, body: bytes) -> bytes:
        self.begin(kind, body)
        return self.finish(kind)

    def begin(self, kind: int, body: bytes) -> None:
        self._body = body

    def finish(self, kind: int) -> bytes:
        limit, began = sys.getrecursionlimit(), time.thread_time()
        try:
            return self._engine.reply(kind, memoryview(self._body))
        except MemoryError:
            raise HostDied("ran out of memory", bytes(self._page), out_of_memory=True) from None
        except Exception as error:
            raise HostDied(
                f"failed with an error that nothing caught: {error!r}", bytes(self._page), own=True
            ) from error
        finally:
            sys.setrecursionlimit(limit)
            self._seconds += time.thread_time() - began

    def cpu_seconds(self) -> float:
        return self._seconds

    def resident(self) -> int:
        return int(psutil.Process().memory_info().rss)

    def close(self) -> None: ...
