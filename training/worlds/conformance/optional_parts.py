"""Promises of the parts that only some worlds have."""

from __future__ import annotations

import json
from importlib import import_module
from math import isfinite

from rlgpt.training.worlds.conformance.promise import expect, longest_task
from rlgpt.training.worlds.optional_parts import (
    ChargesCalls,
    ChecksMachine,
    DrawsViews,
    LimitsEnvs,
    NamesAttributes,
    NamesTexts,
    ReportsEvents,
    ResetsSlowly,
    ShowsMoments,
    StepsSlowly,
    Surveys,
    TellsEnding,
    describe_view,
    is_slow,
    offers,
    report_to,
    survey_of,
)
from rlgpt.training.worlds.packed import packed_view
from rlgpt.training.worlds.protocol import World, WorldFailed
from rlgpt.training.worlds.unchanging import public_data

PICTURE = 4_000
"""Characters of a view's picture at most: a request may hold a dozen of them."""


def check_optional_parts(world: World) -> str:
    """Those that a world has; the others have their own promises or nothing to check from outside."""
    parts = []
    if offers(world, LimitsEnvs):
        parts.append("max_envs")
        expect(type(world.max_envs) is int and world.max_envs >= 1, f"max_envs is {world.max_envs!r}")
    if offers(world, StepsSlowly):
        parts.append("slow")
        expect(type(world.slow) is bool, f"slow is {world.slow!r}")
    if offers(world, ResetsSlowly):
        parts.append("reset_steps")
        whole = type(world.reset_steps) is int and world.reset_steps >= 0
        expect(whole, f"reset_steps is {world.reset_steps!r}")
        expect(is_slow(world), "reset_steps is for worlds that say that they are slow")
    if offers(world, ReportsEvents):
        parts.append("report")
        before = world.report
        report_to(world, before)
        expect(callable(before), "report is no function")
    if offers(world, ChecksMachine):
        parts.append("ready")
        try:
            world.ready()
        except WorldFailed as error:
            expect(bool(str(error)), "ready() fails without a sentence for the operator")
    return ", ".join([*parts, *_optional_host_parts(world)]) or "none"


def _optional_host_parts(world: World) -> list[str]:
    host, parts = import_module(world.host_module), []
    env = world.make(longest_task(world))
    env.reset(1)
    view = host.decoder().view(packed_view(env, True))
    if offers(env, TellsEnding):
        parts.append("ending")
        cause, vitals = env.ending()
        expect(cause == "", f"ending() says {cause!r} killed an agent that has just begun")
        are_numbers = all(isinstance(name, str) and isfinite(value) for name, value in vitals.items())
        expect(are_numbers, f"the vitals of ending() are not numbers by name: {dict(vitals)!r}")
    if offers(env, Surveys):
        parts.append("survey")
        survey_of(env)
    env.close()
    if offers(host, ShowsMoments):
        parts.append("moment")
        line = dict(host.moment(view))
        expect(json.loads(json.dumps(line)) == line, "moment() gives other values than JSON's")
        expect(not {"step", "doing"} & line.keys(), "moment() must leave `step` and `doing` to the timeline")
    if offers(host, DrawsViews):
        parts.append("picture")
        expect(0 < len(host.picture(view)) <= PICTURE, f"picture() is empty or longer than {PICTURE} characters")
    if offers(host, NamesTexts):
        parts.append("TEXTS")
        for name, texts in host.TEXTS.items():
            plain = not isinstance(texts, str) and all(isinstance(text, str) for text in texts)
            expect(plain, f"TEXTS[{name!r}] must be a collection of texts")
    if offers(host, ChargesCalls):
        parts.append("COSTS")
        for name, ticks in host.COSTS.items():
            expect(name in host.LIBRARY, f"COSTS names {name!r}, which is not in LIBRARY")
            expect(type(ticks) is int and ticks > 0, f"COSTS[{name!r}] is {ticks!r}")
    if offers(host, NamesAttributes):
        parts.append("ATTRIBUTES")
        expect(not isinstance(host.ATTRIBUTES, str), "ATTRIBUTES must be a sequence of names")
        for name in host.ATTRIBUTES:
            expect(name.isidentifier() and not name.startswith("_"), f"ATTRIBUTES holds {name!r}")
        missing = set(public_data(view)) - set(host.ATTRIBUTES)
        expect(not missing, f"ATTRIBUTES lacks {', '.join(sorted(missing))} of the view")
    described = describe_view(host, view)
    if described is not None:
        parts.append("describe")
        expect(json.loads(json.dumps(described)) == described, "describe() gives other values than JSON's")
    return parts
