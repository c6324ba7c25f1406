"""Frames as a world draws them: its drawing module is loaded by its path and never imported as a part of `training`.

A session names the module (`protocol.FrameSide`), and a session may come from somebody else. So a module is loaded only
if it belongs to a world that is installed here and imports nothing but the standard library.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from rlgpt.console.view.text import Line, Span, fit

Draw = Callable[[bytes, int, int, str], list[list[tuple[str, str]]] | None]
GROUP = "rlgpt.worlds"
"""The entry points of worlds that other packages bring."""
_OWN = "rlgpt.training.worlds"


def state(module: str, body: bytes) -> dict[str, float]:
    """The agent's state and inventory in a frame: name -> number; {} where the world has no such part."""
    loaded = _loaded(module)
    tell = getattr(loaded, "state", None)
    try:
        return {str(name): float(value) for name, value in tell(body).items()} if tell else {}
    except Exception:  # another package's code, as below
        return {}


def drawn(module: str, body: bytes, width: int, height: int, decision: str) -> list[Line] | None:
    """The frame as lines of at most `width` cells; None where it cannot be drawn here or its bytes are damaged."""
    draw = _drawer(module)
    if draw is None:
        return None
    try:
        rows = draw(body, width, height, decision)
        return None if rows is None else [fit(tuple(Span(*part) for part in row), width) for row in rows]
    except Exception:  # another package's code: a frame that it cannot draw is no reason to end the console
        return None


def _drawer(name: str) -> Draw | None:
    drawing: Draw | None = getattr(_loaded(name), "draw", None)
    return drawing


@cache
def _loaded(name: str) -> ModuleType | None:
    path = _path(name) if _belongs_to_a_world(name) else None
    if path is None:
        return None
    try:
        if not _standard_library_only(path.read_bytes()):
            return None
        own_name = f"rlgpt_frames_{name.replace('.', '_')}"
        spec = spec_from_file_location(own_name, path)
        if spec is None or spec.loader is None:
            return None
        module = sys.modules[own_name] = module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception:  # as above
        return None
    return module


def _belongs_to_a_world(name: str) -> bool:
    """Whether a module is in the package of a world that is registered here."""
    if name.startswith(f"{_OWN}."):
        return True
    packages = {point.module.rpartition(".")[0] or point.module for point in entry_points(group=GROUP)}
    return any(name.startswith(f"{package}.") for package in packages)


def _path(name: str) -> Path | None:
    """The file of a module. The packages it lies in are looked up and not imported, as `importlib.util.find_spec`
    would."""
    parts, places = name.split("."), None
    origin = None
    for size in range(1, len(parts) + 1):
        whole = ".".join(parts[:size])
        specs = (finder.find_spec(whole, places) for finder in sys.meta_path)
        spec = next((one for one in specs if one is not None), None)
        if spec is None:
            return None
        places, origin = spec.submodule_search_locations, spec.origin
    return Path(origin) if origin and origin.endswith(".py") else None


def _standard_library_only(source: bytes) -> bool:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add("" if node.level else str(node.module).partition(".")[0])
    return imported <= sys.stdlib_module_names
