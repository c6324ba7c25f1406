"""Promises of a world and its episodes: tasks, actions, features, repeatability, saving, time limits."""

from __future__ import annotations

import random
from math import isfinite
from numbers import Integral, Real

import numpy as np

from rlgpt.training.worlds.bounds import bounds_flaw, command_flaw, picture_flaw
from rlgpt.training.worlds.conformance.promise import (
    STEPS,
    Broken,
    expect,
    is_line,
    legal_action,
    longest_task,
    step,
    trace,
    walk,
)
from rlgpt.training.worlds.optional_parts import Scores, offers
from rlgpt.training.worlds.protocol import Task, UnknownTask, World

SETTLING = 8
"""Env steps after the start of an episode in which things may still move without an action."""
ROUNDING = 1e-9
"""Of a score."""


def check_tasks(world: World) -> str:
    expect(is_line(world.name), f"its name is {world.name!r}, no line of printable text")
    expect(is_line(world.version), f"its version is {world.version!r}, no line of printable text")
    expect(bool(world.tasks), "it has no task")
    for name, task in world.tasks.items():
        expect(name == task.id, f"task {task.id!r} is listed as {name!r}")
        typed = is_line(name) and not name.startswith("-") and " " not in name
        expect(typed, f"task id {name!r} cannot be typed: no spaces, no - in front, nothing that is not printed")
        expect(is_line(task.prompt), f"the prompt of task {name!r} is {task.prompt!r}, no line of printable text")
        expect(all(map(is_line, task.milestones)), f"milestones of task {name!r} are {task.milestones!r}, no names")
        whole = type(task.horizon) is int and task.horizon > 0
        expect(whole, f"the horizon of task {name!r} is {task.horizon!r}, no plain int above 0")
        expect(task.kind in ("goal", "score", "survive"), f"task {name!r} is of kind {task.kind!r}")
        if task.kind == "score":
            expect(offers(world, Scores), f"task {name!r} is of kind score, but the world has no `score` method")
            expect(bool(task.milestones), f"score task {name!r} names no milestone that could count")
            _check_score(world, task)
        expect(task.kind != "goal" or bool(task.milestones), f"goal task {name!r} names no milestone")
    try:
        world.make("no such task")
    except UnknownTask as error:
        expect("no such task" in str(error), "the sentence for an unknown task does not name it")
        return f"{len(world.tasks)} tasks"
    raise Broken("an unknown task is accepted")


def _check_score(world: World, task: Task) -> None:
    assert offers(world, Scores)
    count = len(task.milestones)
    for rates in (np.zeros(count), np.ones(count), np.full((3, count), 0.5)):
        score = np.asarray(world.score(rates))
        told = f"score() of task {task.id!r} gives {score!r:.60} for rates of the shape {rates.shape}"
        expect(score.shape == rates.shape[:-1], f"{told}: one number for each row was expected")
        expect(bool(((score >= -ROUNDING) & (score <= 1 + ROUNDING)).all()), f"{told}: numbers in [0, 1] were expected")


def check_actions(world: World) -> str:
    expect(len(world.primitives) == world.action_nvec[0], "primitives and first head differ in number")
    names = [primitive.name for primitive in world.primitives]
    expect(len(set(names)) == len(names), "two primitives share a name")
    expect(set(world.default_features) <= set(world.features), "a default feature is not a feature")
    command = world.native_action([0] * len(world.action_nvec))
    expect(len(command) == world.native_action_size, "native_action_size is not the size of a command")
    for head, size in enumerate(world.action_nvec):
        for index in range(size):
            action = [index if place == head else 0 for place in range(len(world.action_nvec))]
            flaw = command_flaw(world.native_action(action), world.native_action_size)
            expect(not flaw, flaw)
    return f"{len(names)} primitives, heads {world.action_nvec}, {len(world.features)} features"


def check_neutral_action(world: World) -> str:
    """Only of several heads: a world with one head need not have an action that does nothing."""
    if len(world.action_nvec) == 1:
        return "one head"
    env = world.make(longest_task(world))
    env.reset(1)
    still = world.native_action([0] * len(world.action_nvec))
    keys = []
    for _ in range(2 * SETTLING):
        env.step(still)
        keys.append(env.progress_key())
    # Two keys are allowed, because an object at rest on the border of two cells may be counted to either.
    expect(len(set(keys[SETTLING:])) <= 2, "index 0 of every head together gets somewhere; it must be neutral")
    env.close()
    return f"index 0 of {len(world.action_nvec)} heads"


def check_features(world: World) -> str:
    task = longest_task(world)
    env = world.make(task)
    for name, feature in world.features.items():
        expect(name == feature.name, f"feature {feature.name!r} is listed as {name!r}")
        flaw = bounds_flaw(feature)
        expect(not flaw, flaw)
        least, most = (0, feature.categories - 1) if feature.categories else (feature.low, feature.high)
        alone = world.make(task, features=[name])
        alone.reset(1)
        for _ in walk(world, alone, 1, 40):
            observation = alone.observe()
            told = f"observe() is {observation!r:.60}; an array of float32 was expected"
            expect(isinstance(observation, np.ndarray), told)
            expect(observation.shape == (feature.size,), f"feature {name!r} has shape {observation.shape}")
            expect(observation.dtype == np.float32, f"feature {name!r} is {observation.dtype}")
            low, high = float(observation.min()), float(observation.max())
            expect(least <= low and high <= most, f"{name!r} left its range, {least} .. {most}: {low} .. {high}")
            if feature.categories:
                expect(bool((observation == np.floor(observation)).all()), f"category feature {name!r} is not whole")
        alone.close()
    env.reset(1)
    size = sum(world.features[name].size for name in world.default_features)
    expect(env.observe().shape == (size,), "the default observation has the wrong size")
    env.close()
    return "sizes, types and ranges"


def check_pictures(world: World) -> str:
    """What a policy looks at with `--observation pixels`."""
    shape = world.pixel_shape
    if shape is None:
        return "the world draws none"
    flaw = picture_flaw(shape)
    expect(not flaw, flaw)
    env = world.make(longest_task(world), pixels=True)
    env.reset(1)
    for _ in walk(world, env, 1, 40):
        picture = env.pixels()
        right = isinstance(picture, np.ndarray) and picture.shape == shape and picture.dtype == np.uint8
        given = f"{picture.dtype} {picture.shape}" if isinstance(picture, np.ndarray) else type(picture).__name__
        expect(right, f"pixels() is {given}; uint8 {shape} was expected")
    env.close()
    return f"uint8 {shape}"


def check_answers(world: World) -> str:
    env = world.make(longest_task(world))
    env.reset(2)
    draw = random.Random(2)
    for count in range(1, STEPS + 1):
        result = step(env, world.native_action(legal_action(world, env, draw)))
        reward, flag = result.reward, (bool, np.bool_)
        expect(isinstance(reward, Real) and isfinite(reward), f"the reward of an env step is {reward!r:.40}, no number")
        flags = {"terminated": result.terminated, "truncated": result.truncated, "succeeded()": env.succeeded()}
        flags |= {"interrupt()": env.interrupt(), "waiting()": env.waiting()}
        for name, value in flags.items():
            expect(isinstance(value, flag), f"{name} is {value!r:.40}, neither True nor False")
        counted = type(env.steps) is int and env.steps == count  # rows and messages take no number of numpy
        expect(counted, f"`steps` is {env.steps!r:.40} after {count} env steps, a plain int was expected")
        for name, number in (("progress_key()", env.progress_key()), ("novelty()", env.novelty())):
            expect(isinstance(number, Integral), f"{name} is {number!r:.40}, no whole number")
        for name, packed in (
            ("view(True)", env.view(True)),
            ("view(False)", env.view(False)),
            ("frame()", env.frame()),
        ):
            expect(isinstance(packed, bytes), f"{name} is {packed!r:.40}, no bytes")
        reached = env.milestones()
        names = isinstance(reached, frozenset) and all(isinstance(name, str) for name in reached)
        expect(names, f"milestones() is {reached!r:.40}, no frozenset of names")
        if result.terminated or result.truncated:
            break
    env.close()
    return f"rewards, flags, counts, views, frames and milestones of {count} env steps"


def check_mask(world: World) -> str:
    env = world.make(longest_task(world))
    env.reset(2)
    shape = (sum(world.action_nvec),)
    for _ in walk(world, env, 2):
        mask, start = env.action_masks(), 0
        told = f"action_masks() is {mask!r:.60}; an array of bool of the shape {shape} was expected"
        expect(isinstance(mask, np.ndarray) and mask.shape == shape and mask.dtype == np.bool_, told)
        for size in world.action_nvec:
            expect(bool(mask[start : start + size].any()), "a head has no legal action")
            start += size
    env.close()
    return "boolean, over all heads, never empty"


def check_repeatability(world: World) -> str:
    first, second = world.make(longest_task(world)), world.make(longest_task(world))
    traces = []
    for env in (first, second, first):
        env.reset(7)
        traces.append(trace(world, env, 7))
        env.reset(8)
        trace(world, env, 8)
    expect(traces[0] == traces[1], "two envs on one seed went apart")
    expect(traces[0] == traces[2], "a second episode on the same seed went apart")
    first.reset(7)
    second.reset(8)
    in_turn = trace(world, first, 7, walk(world, second, 8))  # as the lanes of a session play
    shared = "do they share something, such as the generator of `random` or `numpy.random`?"
    expect(traces[0] == in_turn, f"an episode goes apart where another env is played in turn with it: {shared}")
    first.close()
    second.close()
    return f"{len(traces[0])} steps, two envs, an episode in between, and in turn with another"


def check_observers(world: World) -> str:
    untouched, observed = world.make(longest_task(world)), world.make(longest_task(world))
    untouched.reset(3)
    observed.reset(3)
    commands = list(walk(world, untouched, 3))
    observed.reset(3)
    for command in commands:
        observed.observe(), observed.view(True), observed.frame(), observed.action_masks(), observed.progress_key()
        observed.interrupt(), observed.waiting(), observed.milestones(), observed.novelty(), observed.succeeded()
        for target in world.targets:
            distance = observed.distance(target)
            expect(distance is None or (isfinite(distance) and distance >= 0), f"distance({target!r}) is {distance}")
        observed.step(command)
    expect(untouched.view(True) == observed.view(True), "looking at the world changed it")
    untouched.close()
    observed.close()
    return "looking does not change the episode"


def check_saving(world: World) -> str:
    if not world.restorable:
        return "the world does not claim it"
    env, other = world.make(longest_task(world)), world.make(longest_task(world))
    env.reset(4)
    list(walk(world, env, 4, 30))
    saved, steps = env.save(), env.steps
    expect(type(saved) is bytes, "save() must return bytes")
    expect(not saved.startswith(b"\x80"), "save() looks like a pickle")
    future = trace(world, env, 5)
    other.reset(6)
    other.restore(saved)
    expect(other.steps == steps, "restore() lost the step count")
    expect(other.save() == saved, "what is saved after restore() differs")
    expect(trace(world, other, 5) == future, "the restored world has another future")
    for damaged in (b"", saved[:-1], b"\0" * len(saved)):
        try:
            other.restore(damaged)
        except ValueError:
            continue
        raise Broken("restore() accepts damaged bytes")
    env.close()
    other.close()
    return f"exact, {len(saved)} bytes"


def check_horizon(world: World) -> str:
    task = min(world.tasks.values(), key=lambda task: task.horizon)
    env = world.make(task.id)
    env.reset(5)
    idle, result = world.native_action(legal_action(world, env, random.Random(0))), None
    for _ in range(task.horizon):
        result = step(env, idle)
        expect(np.isfinite(result.reward), "a reward is not finite")
        if result.terminated or result.truncated:
            break
    was_truncated = result is not None and result.truncated
    expect(not was_truncated, f"{task.id} was broken off (truncated) after {env.steps} steps")
    expect(result is not None and result.terminated, "time up must terminate")
    env.close()
    return f"{task.id}: over after {env.steps} of at most {task.horizon} steps"
