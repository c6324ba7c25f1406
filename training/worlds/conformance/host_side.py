"""Promises of the module that the action host loads: views, library, encoding, and what it imports."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from rlgpt.training.worlds.conformance.promise import Broken, expect, longest_task, walk
from rlgpt.training.worlds.packed import packed_view
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
    running.view(packed_view(env, True))
    for _ in walk(world, env, 9):
        change, whole = packed_view(env, False), packed_view(env, True)
        expect(len(change) <= len(whole), "view(False) is larger than view(True)")
        _expect_immutable(host.decoder().view(whole), "view")
    view = running.view(packed_view(env, True))
    fresh = host.decoder().view(packed_view(env, True))
    data = public_data(view)
    for name, value in data.items():
        other = getattr(fresh, name)
        same = value == other or repr(value) == repr(other)  # what is no number (NaN) equals nothing
        expect(same, f"view.{name} depends on the decoder")
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
            name = primitive.name
            try:
                command = host.encode(name)
            except ValueError as error:
                told = "the name of a primitive is what a coded action yields for it"
                raise Broken(f"encode refuses {name!r}, and {told}: {error}") from error
            expect(command == world.native_action([index]), f"{name!r} is encoded wrong")
    for bad in (None, True, 10**6, -1, 0.0, "", "no such primitive", Text(world.primitives[0].name), b"", [], object()):
        try:
            host.encode(bad)
        except ValueError:
            continue
        raise Broken(f"encode accepts {bad!r}")


_LOADED = """
import importlib.util, sys
from types import ModuleType
name, path, heavy, *packages = sys.argv[1:]
for package in packages:
    package, *paths = package.split("\\n")
    sys.modules[package] = stub = ModuleType(package)
    stub.__path__ = paths
spec = importlib.util.spec_from_file_location(name, path)
sys.modules[name] = module = importlib.util.module_from_spec(spec)
try:
    spec.loader.exec_module(module)
except BaseException as error:
    missing = isinstance(error, ModuleNotFoundError)
    sys.exit(f"there is no module {error.name} there" if missing else f"{type(error).__name__}: {error}")
print(*[each for each in heavy.split() if each in sys.modules])
"""
"""Loads the host module as `host/sandbox/serve.py` does: without the folders of `sys.path` that lie outside Python, the
packages above it empty, and of rlgpt only what `training` has."""


def check_imports(world: World) -> str:
    spec = find_spec(world.host_module)
    if spec is None or spec.origin is None:
        raise Broken(f"there is no module {world.host_module}")
    parts, packages = world.host_module.split("."), ["rlgpt"]
    for name in ("rlgpt.training", *(".".join(parts[:size]) for size in range(1, len(parts)))):
        package = find_spec(name)
        packages.append("\n".join([name, *(package.submodule_search_locations or () if package else ())]))
    words = [sys.executable, "-I", "-S", "-c", _LOADED, world.host_module, spec.origin, " ".join(_HEAVY), *packages]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    why = " ".join(result.stderr[-200:].split())
    expect(result.returncode == 0, f"the action host, which has the standard library only, cannot load it: {why}")
    expect(not result.stdout.strip(), f"the host module imports {result.stdout.strip()}")
    return "standard library only"
