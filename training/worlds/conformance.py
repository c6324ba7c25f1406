"""Whether a world keeps the promises of `protocol`: `rlgpt world check NAME` prints these findings."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import Any, NamedTuple, cast

import numpy as np

from rlgpt.training.worlds.protocol import (
    ChargesCalls,
    ChecksMachine,
    DrawsViews,
    Env,
    FrameSide,
    HostSide,
    LimitsEnvs,
    NamesAttributes,
    NamesTexts,
    NativeAction,
    ReportsEvents,
    ResetsSlowly,
    Scores,
    ShowsMoments,
    StepsSlowly,
    TellsEnding,
    UnknownTask,
    World,
    WorldFailed,
    describe_view,
    is_slow,
    report_to,
)
from rlgpt.training.worlds.unchanging import flaw, public_data

STEPS = 120
SETTLING = 8
"""Env steps after which what moves by itself at a start has come to rest."""
PICTURE = 4_000
"""Characters of a view's picture at most: a request may hold a dozen of them."""
SHEET = (
    "items", "recipes", "primitives", "view_doc", "library_doc", "dangers", "milestones", "scripts", "limits",
)  # fmt: skip
_HEAVY = ("numpy", "torch", "gymnasium", "numba", "yaml", "ctypes", "socket", "subprocess")


class Finding(NamedTuple):
    ok: bool
    what: str
    """The promise."""
    why: str
    """What broke it, or what was checked."""


class _Broken(Exception):
    """The sentence is the argument."""


def check(world: World) -> list[Finding]:
    """Every promise that can be checked from outside, each tried even when another is broken."""
    findings = []
    for what, promise in _PROMISES.items():
        try:
            findings.append(Finding(True, what, promise(world)))
        except _Broken as broken:
            findings.append(Finding(False, what, str(broken)))
        except Exception as error:
            findings.append(Finding(False, what, f"{type(error).__name__}: {error}"))
    return findings


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Broken(otherwise)


def _task(world: World) -> str:
    """The longest task: it leaves most room to look around."""
    return max(world.tasks.values(), key=lambda task: task.horizon).id


def _walk(world: World, env: Env, seed: int, steps: int = STEPS) -> Iterator[NativeAction]:
    """Legal random commands, as long as the episode lasts."""
    draw = random.Random(seed)
    for _ in range(steps):
        command = world.native_action(_legal_action(world, env, draw))
        yield command
        result = env.step(command)
        if result.terminated or result.truncated:
            return


def _legal_action(world: World, env: Env, draw: random.Random) -> list[int]:
    mask, action, at = env.action_masks(), [], 0
    for size in world.action_nvec:
        action.append(draw.choice(np.flatnonzero(mask[at : at + size]).tolist()))
        at += size
    return action


def _trace(world: World, env: Env, seed: int) -> list[tuple[object, ...]]:
    """What one episode of random commands showed."""
    draw = random.Random(seed)
    shown: list[tuple[object, ...]] = []
    for _ in range(STEPS):
        command = world.native_action(_legal_action(world, env, draw))
        result = env.step(command)
        shown.append((command, *result, env.observe().tobytes(), env.view(False), env.frame(), env.novelty()))
        if result.terminated or result.truncated:
            break
    return shown


# --- promises --------------------------------------------------------------------------------------------


def _tasks(world: World) -> str:
    _expect(bool(world.tasks), "it has no task")
    for name, task in world.tasks.items():
        _expect(name == task.id, f"task {task.id!r} is listed as {name!r}")
        _expect(task.horizon > 0, f"task {name!r} has no horizon")
        _expect(task.kind in ("goal", "score", "survive"), f"task {name!r} is of kind {task.kind!r}")
        if task.kind == "score":
            _expect(isinstance(world, Scores), f"task {name!r} is of kind score, but the world has no `score` method")
        _expect(task.kind != "goal" or bool(task.milestones), f"goal task {name!r} names no milestone")
    try:
        world.make("no such task")
    except UnknownTask as error:
        _expect("no such task" in str(error), "the sentence for an unknown task does not name it")
        return f"{len(world.tasks)} tasks"
    raise _Broken("an unknown task is accepted")


def _spaces(world: World) -> str:
    _expect(len(world.primitives) == world.action_nvec[0], "primitives and first head differ in number")
    names = [primitive.name for primitive in world.primitives]
    _expect(len(set(names)) == len(names), "two primitives share a name")
    _expect(set(world.default_features) <= set(world.features), "a default feature is not a feature")
    command = world.native_action([0] * len(world.action_nvec))
    _expect(len(command) == world.native_action_size, "native_action_size is not the size of a command")
    _expect(all(type(part) is int for part in command), "a command must hold plain ints")
    return f"{len(names)} primitives, heads {world.action_nvec}, {len(world.features)} features"


def _neutral(world: World) -> str:
    """Only of several heads: a world with one head need not have an action that does nothing."""
    if len(world.action_nvec) == 1:
        return "one head"
    env = world.make(_task(world))
    env.reset(1)
    still = world.native_action([0] * len(world.action_nvec))
    keys = []
    for _ in range(2 * SETTLING):
        env.step(still)
        keys.append(env.progress_key())
    # Two keys: what rests on the border between two cells may be counted to either.
    _expect(len(set(keys[SETTLING:])) <= 2, "index 0 of every head together gets somewhere; it must be neutral")
    env.close()
    return f"index 0 of {len(world.action_nvec)} heads"


def _features(world: World) -> str:
    task = _task(world)
    env = world.make(task)
    for name, feature in world.features.items():
        alone = world.make(task, features=[name])
        alone.reset(1)
        for _ in _walk(world, alone, 1, 40):
            seen = alone.observe()
            _expect(seen.shape == (feature.size,), f"feature {name!r} has shape {seen.shape}")
            _expect(seen.dtype == np.float32, f"feature {name!r} is {seen.dtype}")
            low, high = float(seen.min()), float(seen.max())
            _expect(feature.low <= low and high <= feature.high, f"{name!r} left its range: {low} .. {high}")
            if feature.categories:
                _expect(bool((seen == np.floor(seen)).all()), f"category feature {name!r} is not whole")
        alone.close()
    env.reset(1)
    size = sum(world.features[name].size for name in world.default_features)
    _expect(env.observe().shape == (size,), "the default observation has the wrong size")
    env.close()
    return "sizes, types and ranges"


def _mask(world: World) -> str:
    env = world.make(_task(world))
    env.reset(2)
    for _ in _walk(world, env, 2):
        mask, at = env.action_masks(), 0
        _expect(mask.shape == (sum(world.action_nvec),) and mask.dtype == np.bool_, f"the mask is {mask.shape}")
        for size in world.action_nvec:
            _expect(bool(mask[at : at + size].any()), "a head has no legal action")
            at += size
    env.close()
    return "boolean, over all heads, never empty"


def _deterministic(world: World) -> str:
    first, second = world.make(_task(world)), world.make(_task(world))
    traces = []
    for env in (first, second, first):
        env.reset(7)
        traces.append(_trace(world, env, 7))
        env.reset(8)
        _trace(world, env, 8)
    _expect(traces[0] == traces[1], "two envs on one seed went apart")
    _expect(traces[0] == traces[2], "a second episode on the same seed went apart")
    first.close()
    second.close()
    return f"{len(traces[0])} steps, two envs, an episode in between"


def _observers_are_silent(world: World) -> str:
    quiet, watched = world.make(_task(world)), world.make(_task(world))
    quiet.reset(3)
    watched.reset(3)
    commands = list(_walk(world, quiet, 3))
    watched.reset(3)
    for command in commands:
        watched.observe(), watched.view(True), watched.frame(), watched.action_masks(), watched.progress_key()
        watched.interrupt(), watched.waiting(), watched.milestones(), watched.novelty(), watched.succeeded()
        for target in world.targets:
            far = watched.distance(target)
            _expect(far is None or far >= 0, f"distance({target!r}) is {far}")
        watched.step(command)
    _expect(quiet.view(True) == watched.view(True), "looking at the world changed it")
    quiet.close()
    watched.close()
    return "looking does not change the episode"


def _saves(world: World) -> str:
    if not world.restorable:
        return "the world does not claim it"
    env, other = world.make(_task(world)), world.make(_task(world))
    env.reset(4)
    list(_walk(world, env, 4, 30))
    saved, steps = env.save(), env.steps
    _expect(type(saved) is bytes, "save() must return bytes")
    _expect(not saved.startswith(b"\x80"), "save() looks like a pickle")
    future = _trace(world, env, 5)
    other.reset(6)
    other.restore(saved)
    _expect(other.steps == steps, "restore() lost the step count")
    _expect(other.save() == saved, "what is saved after restore() differs")
    _expect(_trace(world, other, 5) == future, "the restored world has another future")
    for damaged in (b"", saved[:-1], b"\0" * len(saved)):
        try:
            other.restore(damaged)
        except ValueError:
            continue
        raise _Broken("restore() accepts damaged bytes")
    env.close()
    other.close()
    return f"exact, {len(saved)} bytes"


def _horizon(world: World) -> str:
    task = min(world.tasks.values(), key=lambda task: task.horizon)
    env = world.make(task.id)
    env.reset(5)
    idle, result = world.native_action(_legal_action(world, env, random.Random(0))), None
    for _ in range(task.horizon):
        result = env.step(idle)
        _expect(np.isfinite(result.reward), "a reward is not finite")
        if result.terminated or result.truncated:
            break
    cut = result is not None and result.truncated
    _expect(not cut, f"{task.id} was broken off (truncated) after {env.steps} steps")
    _expect(result is not None and result.terminated, "time up must terminate")
    env.close()
    return f"{task.id}: over after {env.steps} of at most {task.horizon} steps"


def _host_side(world: World) -> str:
    host = cast(HostSide, import_module(world.host_module))
    _expect(world.native_action_size == host.NATIVE_ACTION_SIZE, "NATIVE_ACTION_SIZE differs from the world's")
    _expect(all(not name.startswith("_") for name in host.LIBRARY), "a library name has an underscore")
    env = world.make(_task(world))
    env.reset(9)
    running = host.decoder()
    running.view(env.view(True))
    for _ in _walk(world, env, 9):
        change, whole = env.view(False), env.view(True)
        _expect(type(change) is bytes and len(change) <= len(whole), "view(False) is larger than view(True)")
        _unchanging(host.decoder().view(whole), "view")
    view = running.view(env.view(True))
    fresh = host.decoder().view(env.view(True))
    data = public_data(view)
    for name, value in data.items():
        _expect(value == getattr(fresh, name), f"view.{name} depends on the decoder")
    for name, value in host.LIBRARY.items():
        if not callable(value):
            _unchanging(value, name)
    _encode(world, host)
    env.close()
    return f"{len(data)} attributes, {len(host.LIBRARY)} library names"


def _unchanging(value: object, name: str) -> None:
    sentence = flaw(value, name)
    _expect(not sentence, sentence)


def _optional_parts(world: World) -> str:
    """Those that a world has; the others have their own promises or nothing to check from outside."""
    has = []
    if isinstance(world, LimitsEnvs):
        has.append("max_envs")
        _expect(type(world.max_envs) is int and world.max_envs >= 1, f"max_envs is {world.max_envs!r}")
    if isinstance(world, StepsSlowly):
        has.append("slow")
        _expect(type(world.slow) is bool, f"slow is {world.slow!r}")
    if isinstance(world, ResetsSlowly):
        has.append("reset_steps")
        whole = type(world.reset_steps) is int and world.reset_steps >= 0
        _expect(whole, f"reset_steps is {world.reset_steps!r}")
        _expect(is_slow(world), "reset_steps is for worlds that say that they are slow")
    if isinstance(world, ReportsEvents):
        has.append("report")
        before = world.report
        report_to(world, before)
        _expect(callable(before), "report is no function")
    if isinstance(world, ChecksMachine):
        has.append("ready")
        try:
            world.ready()
        except WorldFailed as error:
            _expect(bool(str(error)), "ready() fails without a sentence for the operator")
    return ", ".join([*has, *_optional_host_parts(world)]) or "none"


def _optional_host_parts(world: World) -> list[str]:
    host, has = import_module(world.host_module), []
    env = world.make(_task(world))
    env.reset(1)
    view = host.decoder().view(env.view(True))
    if isinstance(env, TellsEnding):
        has.append("ending")
        cause, vitals = env.ending()
        _expect(cause == "", f"ending() says {cause!r} killed an agent that has just begun")
        known = all(isinstance(name, str) and isfinite(value) for name, value in vitals.items())
        _expect(known, f"the vitals of ending() are not numbers by name: {dict(vitals)!r}")
    env.close()
    if isinstance(host, ShowsMoments):
        has.append("moment")
        told = dict(host.moment(view))
        _expect(json.loads(json.dumps(told)) == told, "moment() gives other values than JSON's")
        _expect(not {"step", "doing"} & told.keys(), "moment() must leave `step` and `doing` to the timeline")
    if isinstance(host, DrawsViews):
        has.append("picture")
        _expect(0 < len(host.picture(view)) <= PICTURE, f"picture() is empty or longer than {PICTURE} characters")
    if isinstance(host, NamesTexts):
        has.append("TEXTS")
        for name, texts in host.TEXTS.items():
            plain = not isinstance(texts, str) and all(isinstance(text, str) for text in texts)
            _expect(plain, f"TEXTS[{name!r}] must be a collection of texts")
    if isinstance(host, ChargesCalls):
        has.append("COSTS")
        for name, ticks in host.COSTS.items():
            _expect(name in host.LIBRARY, f"COSTS names {name!r}, which is not in LIBRARY")
            _expect(type(ticks) is int and ticks > 0, f"COSTS[{name!r}] is {ticks!r}")
    if isinstance(host, NamesAttributes):
        has.append("ATTRIBUTES")
        _expect(not isinstance(host.ATTRIBUTES, str), "ATTRIBUTES must be a sequence of names")
        for name in host.ATTRIBUTES:
            _expect(name.isidentifier() and not name.startswith("_"), f"ATTRIBUTES holds {name!r}")
        lost = set(public_data(view)) - set(host.ATTRIBUTES)
        _expect(not lost, f"ATTRIBUTES lacks {', '.join(sorted(lost))} of the view")
    described = describe_view(host, view)
    if described is not None:
        has.append("describe")
        _expect(json.loads(json.dumps(described)) == described, "describe() gives other values than JSON's")
    return has


def _encode(world: World, host: HostSide) -> None:
    class Text(str):
        """Not exactly a str."""

    if len(world.action_nvec) == 1:
        for index, primitive in enumerate(world.primitives):
            _expect(host.encode(primitive.name) == world.native_action([index]), f"{primitive.name!r} is encoded wrong")
    for bad in (None, True, 10**6, -1, 0.0, "", "no such primitive", Text(world.primitives[0].name), b"", [], object()):
        try:
            host.encode(bad)
        except ValueError:
            continue
        raise _Broken(f"encode accepts {bad!r}")


def _light(world: World) -> str:
    code = f"import sys, {world.host_module}; print(*[m for m in {_HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    _expect(done.returncode == 0, f"the host module cannot be imported alone: {done.stderr[-200:]}")
    _expect(not done.stdout.strip(), f"the host module imports {done.stdout.strip()}")
    return "standard library only"


def _frames(world: World) -> str:
    if not world.frame_module:
        _expect(
            world.frame_format in ("jpeg", "text"), f"frames of the format {world.frame_format} need a frame_module"
        )
        return f"{world.frame_format}, drawn by the console"
    spec = find_spec(world.frame_module)
    origin = spec.origin if spec is not None else None
    if origin is None:
        raise _Broken(f"there is no module {world.frame_module}")
    alone = [sys.executable, "-I", "-S", "-c", "import runpy, sys; runpy.run_path(sys.argv[1])", origin]
    done = subprocess.run(alone, capture_output=True, text=True, timeout=60, check=False)
    _expect(done.returncode == 0, f"{origin} cannot be loaded by its path: {done.stderr[-200:]}")
    side = cast(FrameSide, import_module(world.frame_module))
    env = world.make(_task(world))
    env.reset(9)
    for _ in _walk(world, env, 9):
        for width, height in ((8, 4), (80, 24), (200, 60)):
            rows = side.draw(env.frame(), width, height, "a decision")
            _expect(bool(rows), f"a frame is not drawn in {width} x {height} cells")
    env.close()
    for damaged in (b"", b"\0" * 1_000):
        _expect(side.draw(damaged, 80, 24, "") is None, "bytes that are no frame are drawn")
    return f"drawn by {world.frame_module}"


def _sheet(world: World) -> str:
    for task in world.tasks:
        sheet: dict[str, Any] = world.sheet(task)
        missing = [name for name in SHEET if name not in sheet]
        _expect(not missing, f"the sheet lacks {', '.join(missing)}")
        listed = [entry["name"] for entry in sheet["primitives"]]
        _expect(listed == [p.name for p in world.primitives], "the sheet's primitives differ from the world's")
        known = {entry["name"] if isinstance(entry, dict) else entry for entry in sheet["milestones"]}
        lost = set(world.tasks[task].milestones) - known
        _expect(not lost, f"the sheet of {task} lacks the milestones {', '.join(sorted(lost))}")
        ast.literal_eval(repr(sheet))
    return "complete, plain data"


def _scripts(world: World) -> str:
    count = 0
    for task in world.tasks:
        book = {script.name: script for script in world.scripts(task)}
        for script in book.values():
            lost = set(script.needs) - set(book)
            _expect(not lost, f"script {script.name!r} needs {', '.join(sorted(lost))}, which is not there")
            ast.parse(script.done_when, mode="eval")
            lengths = [len(source) for source in script.sources]
            _expect(bool(lengths), f"script {script.name!r} has no source")
            _expect(lengths == sorted(lengths), f"versions of {script.name!r} are not ordered by length")
            for source in script.sources:
                ast.parse(source)
        count = max(count, len(book))
    return f"{count} scripts parse, needs resolve, versions ordered by length"


_PROMISES: dict[str, Callable[[World], str]] = {
    "tasks are well formed": _tasks,
    "actions and commands fit": _spaces,
    "neutral actions keep still": _neutral,
    "features keep their shapes and ranges": _features,
    "the mask leaves an action": _mask,
    "episodes repeat": _deterministic,
    "observers change nothing": _observers_are_silent,
    "save and restore are exact": _saves,
    "time limits terminate": _horizon,
    "views decode and cannot be changed": _host_side,
    "optional parts are well formed": _optional_parts,
    "the host module is light": _light,
    "frames are drawn": _frames,
    "the world sheet is complete": _sheet,
    "the script book is sound": _scripts,
}
