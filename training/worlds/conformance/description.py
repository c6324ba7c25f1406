"""Promises of a world's frames and of its script book."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import cast

from rlgpt.training.worlds.conformance.promise import Broken, expect, longest_task, walk
from rlgpt.training.worlds.conformance.sheet import plan_flaw
from rlgpt.training.worlds.optional_parts import TellsState, offers
from rlgpt.training.worlds.protocol import FrameSide, World


def check_frames(world: World) -> str:
    if not world.frame_module:
        expect(world.frame_format in ("jpeg", "text"), f"frames of the format {world.frame_format} need a frame_module")
        if world.frame_format == "jpeg":
            _expect_picture(world)
        return f"{world.frame_format}, drawn by the console"
    spec = find_spec(world.frame_module)
    origin = spec.origin if spec is not None else None
    if origin is None:
        raise Broken(f"there is no module {world.frame_module}")
    alone = [sys.executable, "-I", "-S", "-c", "import runpy, sys; runpy.run_path(sys.argv[1])", origin]
    result = subprocess.run(alone, capture_output=True, text=True, timeout=60, check=False)
    expect(result.returncode == 0, f"{origin} cannot be loaded by its path: {result.stderr[-200:]}")
    foreign = sorted(_imported(Path(origin)) - sys.stdlib_module_names)
    expect(not foreign, f"{world.frame_module} imports {', '.join(foreign)}, so the console does not load it")
    told = f"{world.frame_module} is in no package, and the console loads such modules from the packages of worlds only"
    expect("." in world.frame_module, told)
    side = cast(FrameSide, import_module(world.frame_module))
    env = world.make(longest_task(world))
    env.reset(9)
    for _ in walk(world, env, 9):
        for width, height in ((8, 4), (80, 24), (200, 60)):
            rows = side.draw(env.frame(), width, height, "a decision")
            expect(bool(rows), f"a frame is not drawn in {width} x {height} cells")
    damaged = (b"", b"\0" * 1_000)
    for body in damaged:
        expect(side.draw(body, 80, 24, "") is None, "bytes that are no frame are drawn")
    if offers(side, TellsState):
        values = side.state(env.frame())
        numbers = all(isinstance(name, str) and isfinite(value) for name, value in values.items())
        expect(bool(values) and numbers, f"state() of a frame gives no numbers by name: {values!r}")
        for body in damaged:
            expect(side.state(body) == {}, "state() of bytes that are no frame is not {}")
    env.close()
    packages = [point.module.rpartition(".")[0] or point.module for point in entry_points(group="rlgpt.worlds")]
    if any(world.frame_module.startswith(f"{package}.") for package in ("rlgpt.training.worlds", *packages)):
        return f"drawn by {world.frame_module}"
    return f"drawn by {world.frame_module}, once an entry point of rlgpt.worlds names a world in its package"


def _imported(module: Path) -> set[str]:
    """First names of what a module imports anywhere, also in its functions, as the console reads it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level or str(node.module).partition(".")[0])
    return names


def _expect_picture(world: World) -> None:
    """The bytes of an array, which many simulators give, are no picture file: the console could not draw them."""
    from PIL import Image

    env = world.make(longest_task(world))
    env.reset(9)
    frame = env.frame()
    env.close()
    try:
        with Image.open(io.BytesIO(frame), formats=("JPEG", "PNG")) as image:
            image.load()
    except (OSError, ValueError, SyntaxError) as error:
        raise Broken(f"frame() gives {len(frame)} bytes that are no JPEG picture") from error


def check_scripts(world: World) -> str:
    count = 0
    for task in world.tasks:
        book = {script.name: script for script in world.scripts(task)}
        for script in book.values():
            missing = set(script.needs) - set(book)
            expect(not missing, f"script {script.name!r} needs {', '.join(sorted(missing))}, which is not there")
            flaw = plan_flaw(script.name, script.done_when, script.trigger)
            expect(not flaw, flaw)
            ast.parse(script.done_when, mode="eval")
            lengths = [len(source) for source in script.sources]
            expect(bool(lengths), f"script {script.name!r} has no source")
            expect(lengths == sorted(lengths), f"versions of {script.name!r} are not ordered by length")
            for source in script.sources:
                ast.parse(source)
        count = max(count, len(book))
    return f"{count} scripts parse, needs resolve, versions ordered by length"
