"""Promises of the module that the action host loads: views, library, encoding, and what it imports."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import cast

from rlgpt.training.worlds.conformance.promise import Broken, expect, longest_task, walk
from rlgpt.training.worlds.protocol import HostSide, World
from rlgpt.training.worlds.unchanging import find_flaw, public_data

_HEAVY = ("numpy", "torch", "gymnasium", "numba", "yaml", "ctypes", "socket", "subprocess")


def check_host_side(world: World) -> str:
    host = cast(HostSide, import_module(world.host_module))
    expect(world.native_action_size == host.NATIVE_ACTION_SIZE, "NATIVE_ACTION_SIZE differs from the world's")
    expect(all(not name.startswith("_") for name in host.LIBRARY), "a library name has an underscore")
    env = world.make(longest_task(world))
    env.reset(9)
    running = host.decoder()
    running.view(env.view(True))
    for _ in walk(world, env, 9):
        change, whole = env.view(False), env.view(True)
        expect(type(change) is bytes and len(change) <= len(whole), "view(False) is larger than view(True)")
        _expect_immutable(host.decoder().view(whole), "view")
    view = running.view(env.view(True))
    fresh = host.decoder().view(env.view(True))
    data = public_data(view)
    for name, value in data.items():
        expect(value == getattr(fresh, name), f"view.{name} depends on the decoder")
    for name, value in host.LIBRARY.items():
        if not callable(value):
            _expect_immutable(value, name)
    _encode(world, host)
    env.close()
    return f"{len(data)} attributes, {len(host.LIBRARY)} library names"


def _expect_immutable(value: object, name: str) -> None:
    sentence = find_flaw(value, name)
    expect(not sentence, sentence)


def _encode(world: World, host: HostSide) -> None:
    class Text(str):
        """Not exactly a str."""

    if len(world.action_nvec) == 1:
        for index, primitive in enumerate(world.primitives):
            expect(host.encode(primitive.name) == world.native_action([index]), f"{primitive.name!r} is encoded wrong")
    for bad in (None, True, 10**6, -1, 0.0, "", "no such primitive", Text(world.primitives[0].name), b"", [], object()):
        try:
            host.encode(bad)
        except ValueError:
            continue
        raise Broken(f"encode accepts {bad!r}")


def check_imports(world: World) -> str:
    code = f"import sys, {world.host_module}; print(*[m for m in {_HEAVY!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    expect(result.returncode == 0, f"the host module cannot be imported alone: {result.stderr[-200:]}")
    expect(not result.stdout.strip(), f"the host module imports {result.stdout.strip()}")
    return "standard library only"
