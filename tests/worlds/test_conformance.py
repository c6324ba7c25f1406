"""Every world here passes the conformance check, and the check sees what is broken."""

import random
import sys
from dataclasses import replace
from types import MappingProxyType, ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from rlgpt.training.ordered_sets import FrozenSet
from rlgpt.training.worlds import optional_parts, registry
from rlgpt.training.worlds.conformance import check
from rlgpt.training.worlds.optional_parts import WorldEvent
from rlgpt.training.worlds.packed import VIEW_CAP
from rlgpt.training.worlds.protocol import Feature, Script, WorldFailed
from rlgpt.training.worlds.unchanging import find_flaw
from tests.worlds import corridor_host
from tests.worlds.corridor import CorridorEnv, CorridorWorld, ScriptedCorridor

WHOLE = "the world sheet is complete"
WORLDS = ("crafter", "tests.worlds.corridor:make_world", "tests.worlds.corridor:make_two_heads")


@pytest.mark.parametrize("name", WORLDS)
def test_it_passes(name):
    broken = [finding for finding in check(registry.get(name)) if not finding.ok]
    assert not broken


class Leaky(CorridorEnv):
    """Looking at it moves the agent."""

    def frame(self):
        self._position = min(self._position + 1, 3)
        return super().frame()


class Forgetful(CorridorEnv):
    def restore(self, state):
        super().restore(state)
        self._flags = 0


class SharesRandom(CorridorEnv):
    """Slips by the generator that all envs share, as many of gym's do."""

    def reset(self, seed):
        super().reset(seed)
        random.seed(seed)

    def step(self, command):
        return super().step(command if random.random() < 0.7 else (1,))


class Eternal(CorridorEnv):
    def step(self, command):
        return super().step(command)._replace(terminated=False)


class Giant(CorridorEnv):
    def observe(self):
        return super().observe() * 9


@pytest.mark.parametrize(
    ("env", "promise"),
    [
        (Leaky, "observers change nothing"),
        (SharesRandom, "episodes repeat"),
        (Forgetful, "save and restore are exact"),
        (Eternal, "time limits terminate"),
        (Giant, "features keep their shapes and ranges"),
    ],
)
def test_it_names_the_broken_promise(env, promise):
    assert promise in {finding.what for finding in check(world_of(env)) if not finding.ok}


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("take_key", {"prompt": None}, "prompt of task 'take_key' is None"),
        ("take_key", {"prompt": " "}, "prompt of task 'take_key' is ' '"),
        ("take\udc80key", {}, "cannot be typed"),
        ("take the key", {}, "cannot be typed"),
        ("--yes", {}, "cannot be typed"),
        ("take_key", {"milestones": (None,)}, "milestones of task 'take_key' are (None,)"),
        ("take_key", {"horizon": np.int64(40)}, "horizon of task 'take_key' is np.int64(40), no plain int above 0"),
        ("take_key", {"horizon": 40.0}, "horizon of task 'take_key' is 40.0, no plain int above 0"),
        ("take_key", {"horizon": 0}, "horizon of task 'take_key' is 0, no plain int above 0"),
        ("take_key", {"kind": "score", "milestones": ()}, "score task 'take_key' names no milestone"),
    ],
)
def test_it_names_the_task_that_cannot_be_shown_or_typed(name, changes, why):
    class Broken(CorridorWorld):
        tasks = MappingProxyType({name: replace(CorridorWorld.tasks["take_key"], id=name, **changes)})

    finding = next(one for one in check(Broken()) if one.what == "tasks are well formed")
    assert not finding.ok and why in finding.why, finding.why


def finding_of(world, what):
    return next(one for one in check(world) if one.what == what)


@pytest.mark.parametrize(
    ("feature", "why"),
    [
        (Feature("position", 1, "", float("-inf"), float("inf")), "the range -inf to inf, and a network needs finite"),
        (Feature("position", 1, "", 0, float("nan")), "needs finite bounds: clip or squash its values"),
        (Feature("position", 1, "", -3.4e38, 3.4e38), "needs finite bounds"),
        (Feature("position", 1, "", 1, 1), "low must be below high"),
        (Feature("position", 1, "", 1, 0), "low must be below high"),
        (Feature("position", 1, "", None, 1), "the bounds None and 1, which are no numbers"),
        (Feature("cell", 1, "", 0, 3, categories=2), "'cell' left its range, 0 .. 1: "),
        (Feature("cell", 1, "", categories=-4), "has -4 categories"),
        (Feature("cell", 1, "", categories=4), ""),
        (Feature("where", 1, ""), "feature 'where' is listed as 'position'"),
    ],
)
def test_it_names_the_feature_that_no_network_can_take_in(feature, why):
    class Bounded(CorridorWorld):
        features = CorridorWorld.features | {feature.name if feature.name == "cell" else "position": feature}

    finding = finding_of(Bounded(), "features keep their shapes and ranges")
    assert finding.ok is not bool(why) and why in finding.why, finding.why


class Wide(CorridorEnv):
    """Its views decode, whatever stands behind them."""

    size = VIEW_CAP + 1

    def view(self, whole):
        return super().view(whole).ljust(self.size, b"\0")


def test_it_refuses_a_view_that_is_too_large_to_be_sent(monkeypatch):
    decode = corridor_host.View
    monkeypatch.setattr(corridor_host, "View", lambda packed: decode(packed[:8]))
    finding = finding_of(world_of(Wide), "views decode and cannot be changed")
    told = "view() gave 2,097,153 bytes at step 0 of an episode of take_coin; at most 2,097,152 can be sent."
    assert not finding.ok and finding.why == told
    monkeypatch.setattr(Wide, "size", VIEW_CAP)
    assert finding_of(world_of(Wide), "views decode and cannot be changed").ok


@pytest.mark.parametrize("given", [None, bytearray(2), "view"])
def test_it_says_that_a_view_is_no_bytes(given):
    class Blind(CorridorEnv):
        def view(self, whole):
            return given

    told = {one.what: one.why for one in check(world_of(Blind)) if not one.ok}
    for promise in ("views decode and cannot be changed", "optional parts are well formed"):
        assert told[promise] == f"view() gave {given!r} at step 0 of an episode of take_coin; bytes were expected."
    assert told["answers are of the right types"] == f"view(True) is {given!r}, no bytes"


def test_a_version_is_text():
    world = CorridorWorld()
    world.version = 3
    assert finding_of(world, "tasks are well formed").why == "its version is 3, no line of printable text"


@pytest.mark.parametrize(
    ("score", "why"),
    [
        (lambda rates: rates.sum(axis=-1), "numbers in [0, 1] were expected"),
        (lambda rates: rates.mean(), "one number for each row was expected"),
        (lambda rates: rates.mean(axis=-1) * np.nan, "numbers in [0, 1] were expected"),
        (lambda rates: rates.mean(axis=-1), ""),
    ],
)
def test_a_score_is_a_number_from_0_to_1_for_each_row_of_rates(score, why):
    world = CorridorWorld()
    world.score = score
    finding = finding_of(world, "tasks are well formed")
    assert finding.ok is not bool(why) and why in finding.why, finding.why


class Leaving(CorridorEnv):
    def step(self, command):
        raise self._world.leaving


@pytest.mark.parametrize("leaving", [SystemExit(3), KeyboardInterrupt()])
def test_a_world_that_leaves_in_an_env_step_is_a_finding(leaving):
    class Broken(CorridorWorld):
        def make(self, task, *, features=None, pixels=False):
            made = super().make(task, features=features, pixels=pixels)
            return Leaving(self, made.task, features or self.default_features)

    world = Broken()
    world.leaving = leaving
    findings = check(world)
    broken = next(one for one in findings if not one.ok)
    assert "The world corridor failed in test_conformance.py, line " in broken.why
    assert type(leaving).__name__ in broken.why
    assert (findings[-1] == broken) is isinstance(leaving, KeyboardInterrupt)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import names_beside_it", "cannot load it: there is no module names_beside_it there"),
        ("import numpy", "cannot load it: there is no module numpy there"),
        ("import sys; sys.exit()", "cannot load it: SystemExit:"),
        ("import subprocess", "the host module imports subprocess"),
        ("from rlgpt.training.ordered_sets import FrozenSet", ""),
    ],
)
def test_a_host_module_is_loaded_as_the_action_host_loads_it(source, why, tmp_path, monkeypatch):
    (tmp_path / "names_beside_it.py").write_text("")
    name = f"host_of_somebody_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(f"{source}\n")
    monkeypatch.syspath_prepend(tmp_path)
    world = CorridorWorld()
    world.host_module = name
    finding = finding_of(world, "the host module is light")
    assert finding.ok is not bool(why) and why in finding.why, finding.why


SCRIPT = {"name": "go", "goal": "Go.", "done_when": "view.key", "sources": ["def go(view):\n    yield 0"], "gives": []}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"items": {"key", "door"}}, "sheet('take_key')['items'] is a set"),
        ({"items": [{"name": "a", "cells": {(0, 1): 1}}]}, "the key (0, 1) of sheet('take_key')['items'][0]['cells']"),
        ({"more": {1: "a"}}, "the key 1 of sheet('take_key')['more'] is a int"),
        ({"items": [{"name": "a", "size": np.float64(1.5)}]}, "['items'][0]['size'] is a float64"),
        ({"items": [{"name": "a", "reach": float("inf")}]}, "['items'][0]['reach'] is inf"),
        ({"items": [{"doc": "a"}]}, "items[0] of take_key lacks name: a text or a dict with name"),
        ({"items": "key, door"}, "items of take_key is 'key, door', a list was expected"),
        ({"view_doc": ["at", "left"]}, "view_doc of take_key is ['at', 'left'], a text was expected"),
        ({"view_doc": "\udc80"}, "the sheet of take_key cannot be written for a model: UnicodeEncodeError"),
        ({"dangers": ["a pit", {"name": "pit", "harm": "ends it"}]}, "dangers[1] of take_key lacks doc"),
        ({"dangers": [7]}, "dangers[0] of take_key is 7, a text or a dict with name, doc was expected"),
        ({"recipes": [{"item": "plank"}]}, "recipes[0] of take_key lacks name"),
        ({"recipes": [{"name": "plank", "needs": "wood"}]}, "needs of recipes[0] of take_key is 'wood'"),
        ({"primitives": ["left"]}, "primitives[0] of take_key is 'left', a dict with name, doc was expected"),
        (
            {"milestones": [{"name": "take_key", "done_when": "view.key ="}]},
            "done_when of 'take_key' of take_key is no expression",
        ),
        ({"milestones": [{"name": "take_key", "done_when": "view.keys > 1"}]}, "uses view.keys, which a view has not"),
        ({"scripts": [SCRIPT | {"trigger": "near(view)"}]}, "trigger of 'go' of take_key uses near, which the library"),
        ({"scripts": [SCRIPT | {"done_when": "any(key == view.key[99] for key in (1, 2))"}]}, ""),
        ({"milestones": [{"name": "take_key", "done_when": True}]}, "done_when of milestones[0] of take_key is True"),
        ({"limits": "40 env steps"}, "limits of take_key is '40 env steps', a dict was expected"),
        ({"limits": {"option_cap": 300}}, "limits['option_cap'] is 300: Input should be less than or equal to 200"),
        ({"advised_rl": {"gamma": 1.0}}, "advised_rl['gamma'] is 1.0: Input should be less than or equal to 0.9999"),
        ({"advised_rl": {"rollout": 4}}, "advised_rl['rollout'] is 4"),
        ({"advised_rl": {"entropy": 0.1}}, "advised_rl names entropy, which nobody reads"),
        ({"limits": {"option_cap": 8.5}}, "limits['option_cap'] of take_key is 8.5"),
        ({"scripts": [{n: v for n, v in SCRIPT.items() if n != "goal"}]}, "scripts[0] of take_key lacks goal"),
        ({"scripts": [SCRIPT | {"sources": "yield 0"}]}, "sources of scripts[0] of take_key is 'yield 0'"),
        ({"scripts": [SCRIPT | {"name": "GoOn"}]}, "no plan can hold the script name 'GoOn': lower-case letters"),
        ({"scripts": [SCRIPT | {"done_when": "1" * 601}]}, "has 601 characters, at most 600 go"),
        ({"scripts": [SCRIPT], "more": ({"a": (1, None, True, 0.5)},)}, ""),
    ],
)
def test_it_names_the_part_of_the_sheet_that_cannot_be_read(changes, why):
    class Broken(CorridorWorld):
        tasks = MappingProxyType({"take_key": CorridorWorld.tasks["take_key"]})

        def sheet(self, task):
            return super().sheet(task) | changes

    finding = finding_of(Broken(), "the world sheet is complete")
    assert finding.ok is not bool(why) and why in finding.why, finding.why


def test_milestones_that_no_view_shows_are_noted():
    assert "take_key, open_door, take_coin have no done_when" in finding_of(CorridorWorld(), WHOLE).why
    assert "milestones take_coin have" in finding_of(ScriptedCorridor(), WHOLE).why

    class Telling(CorridorWorld):
        def sheet(self, task):
            named = [{"name": name, "done_when": "view.key"} for name in self.tasks[task].milestones]
            return super().sheet(task) | {"milestones": named}

    assert finding_of(Telling(), WHOLE).why == "complete, plain data"


@pytest.mark.parametrize("name", ["TakeKey", "take key", "x" * 41])
def test_a_script_has_a_name_that_a_plan_can_hold(name):
    world = CorridorWorld()
    world.scripts = lambda task: (Script(name, "Go.", "view.key", ("def go(view):\n    yield 0",)),)
    finding = finding_of(world, "the script book is sound")
    assert not finding.ok and f"no plan can hold the script name '{name}'" in finding.why


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner


class Sealed(Slotted):
    __slots__ = ()

    def __setattr__(self, name, value):
        if hasattr(self, name):
            raise AttributeError("sealed")
        object.__setattr__(self, name, value)


class Filled:
    pass


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([1], "view.x is a list"),
        ({"wood": 1}, "view.x is a dict"),
        (frozenset("a"), "view.x is a frozenset"),
        ((1, (2, {3})), "view.x[1][1] is a set"),
        (MappingProxyType({"wood": [1]}), "view.x['wood'] is a list"),
        (MappingProxyType({(1, frozenset("a")): 1}), "the key (1, frozenset({'a'})) of view.x[1] is a frozenset"),
        (FrozenSet([(1, frozenset("a"))]), "view.x[0][1] is a frozenset"),
        (Sealed((bytearray(1),)), "view.x.inner[0] is a bytearray"),
        (Slotted(1), "view.x.inner can be changed"),
        (Filled(), "view.x is a Filled with a __dict__"),
        (MappingProxyType({"wood": (1, "a", None, b"b", 2.0, range(3)), "more": FrozenSet("ab")}), ""),
        (Sealed(Sealed(True)), ""),
    ],
)
def test_what_a_view_must_not_hold_is_found_with_its_place(value, place):
    sentence = find_flaw(value, "view.x")
    assert sentence.startswith(place) and bool(sentence) == bool(place)


def corridor_whose_host_module_has(monkeypatch, **members):
    module = ModuleType("a_host_module")
    vars(module).update({**vars(corridor_host), **members})
    monkeypatch.setitem(sys.modules, "a_host_module", module)
    world = CorridorWorld()
    world.host_module = "a_host_module"
    return world


def only_numbers(yielded):
    if type(yielded) is not int:
        raise ValueError("yield a number")
    return (yielded,)


class Listing(corridor_host.View):
    __slots__ = ()
    seen = property(lambda self: ([1],))


class ListingDecoder:
    def view(self, packed):
        return Listing(packed)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"decoder": ListingDecoder}, "view.seen[0] is a list"),
        ({"encode": only_numbers}, "encode refuses 'left', and the name of a primitive is what"),
        ({"LIBRARY": {"WALLS": {1, 2}}}, "WALLS is a set"),
        ({"COSTS": {"far": 3}}, "'far'"),
        ({"COSTS": {"ahead": 0}}, "COSTS['ahead'] is 0"),
        ({"ATTRIBUTES": ("position", "key", "opened", "coin", "cell", "length")}, "lacks steps_left"),
        ({"ATTRIBUTES": "position"}, "must be a sequence"),
        ({"describe": lambda view: {"at": (view.position,)}}, "describe()"),
        ({"moment": lambda view: {"step": 3}}, "must leave `step` and `doing`"),
        ({"moment": lambda view: {"at": (1, 2)}}, "moment() gives other values"),
        ({"picture": lambda view: ""}, "picture() is empty"),
        ({"TEXTS": {"ahead": "far"}}, "TEXTS['ahead'] must be a collection"),
    ],
)
def test_it_says_what_is_wrong_in_a_host_module(monkeypatch, members, why):
    broken = [finding for finding in check(corridor_whose_host_module_has(monkeypatch, **members)) if not finding.ok]
    assert any(why in finding.why for finding in broken), broken


class Unmeasured(corridor_host.View):
    __slots__ = ()
    seen = property(lambda self: (float("nan"),))


class UnmeasuredDecoder:
    def view(self, packed):
        return Unmeasured(packed)


def test_a_view_of_what_is_no_number_does_not_depend_on_its_decoder(monkeypatch):
    findings = check(corridor_whose_host_module_has(monkeypatch, decoder=UnmeasuredDecoder))
    assert not [finding.why for finding in findings if "depends on the decoder" in finding.why]


def needs_a_game():
    raise WorldFailed("there is no game here: install it")


def fails_in_silence():
    raise WorldFailed("")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("max_envs", 0, "max_envs is 0"),
        ("slow", "no", "slow is 'no'"),
        ("reset_steps", -1, "reset_steps is -1"),
        ("reset_steps", 3, "reset_steps is for worlds that say that they are slow"),
        ("report", None, "report is no function"),
        ("ready", fails_in_silence, "without a sentence"),
        ("max_envs", 2, ""),
        ("slow", True, ""),
        ("report", print, ""),
        ("ready", needs_a_game, ""),
    ],
)
def test_it_says_what_is_wrong_in_an_optional_part_of_a_world(name, value, why):
    world = CorridorWorld()
    setattr(world, name, value)
    (finding,) = [finding for finding in check(world) if finding.what == "optional parts are well formed"]
    assert (why in finding.why and finding.ok is not bool(why)) and (bool(why) or name in finding.why)


def test_a_world_without_optional_parts_is_asked_for_none():
    world = CorridorWorld()
    optional_parts.check_machine(world)
    optional_parts.report_to(world, print)
    assert optional_parts.side_by_side(world, 7) == 7 and not optional_parts.is_slow(world)
    assert not hasattr(world, "report") and optional_parts.describe_view(corridor_host, None) is None


def test_a_world_is_asked_for_the_optional_parts_that_it_has():
    world, told = CorridorWorld(), []
    world.max_envs, world.slow, world.report, world.ready = 3, True, None, needs_a_game
    optional_parts.report_to(world, told.append)
    world.report(WorldEvent("fault", "The game ended."))
    assert optional_parts.side_by_side(world, 7) == 3 and optional_parts.is_slow(world)
    assert told[0].sentence == "The game ended."
    with pytest.raises(WorldFailed, match="install it"):
        optional_parts.check_machine(world)


class Bare:
    """A world of an earlier day."""

    name = "bare"


def test_a_world_that_lacks_members_is_refused_with_their_names(monkeypatch):
    module = ModuleType("bare_world")
    module.make_world = Bare
    monkeypatch.setitem(sys.modules, "bare_world", module)
    with pytest.raises(registry.UnknownWorld, match=r"has no action_nvec, .*frame_module, .*make, "):
        registry.get("bare_world:make_world")


DRAWING = """
def draw(body, width, height, decision):
    return [[("a frame", "")]] if body.strip(b"\\0") else None

def state(body):
    return {state}
"""


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ('{"at": 1.0} if body.strip(b"\\0") else {}', ""),
        ('{"at": "left"} if body.strip(b"\\0") else {}', "must be real number"),
        ('{"at": 1.0}', "state() of bytes that are no frame is not {}"),
        ("{}", "state() of a frame gives no numbers by name: {}"),
    ],
)
def test_what_a_frame_says_of_the_agent_is_numbers_and_nothing_of_other_bytes(state, why, tmp_path, monkeypatch):
    name = f"package_{abs(hash(state))}.drawing"
    finding = drawn_by(name, DRAWING.replace("{state}", state), tmp_path, monkeypatch)
    assert finding.ok == (not why) and why in finding.why


def drawn_by(name, source, tmp_path, monkeypatch):
    """What the check says of the frames of a world that names this module."""
    path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    monkeypatch.syspath_prepend(tmp_path)

    class Drawn(CorridorWorld):
        frame_format, frame_module = "own", name

    (finding,) = [f for f in check(Drawn()) if f.what == "frames are drawn"]
    return finding


STATE = '{"at": 1.0} if body.strip(b"\\0") else {}'


@pytest.mark.parametrize(
    ("name", "imports", "why"),
    [
        ("in_a_package.late", "    import numpy, json", "late imports numpy, so the console does not load it"),
        ("in_a_package.beside", "    from . import sizes", "beside imports ., so the console does not load it"),
        ("alone", "    import json", "alone is in no package"),
        ("in_a_package.plain", "    import json", "once an entry point of rlgpt.worlds names a world in its package"),
    ],
)
def test_a_module_that_the_console_does_not_load_draws_nothing(name, imports, why, tmp_path, monkeypatch):
    source = DRAWING.replace("{state}", STATE).replace("def state", f"def late():\n{imports}\n\ndef state")
    finding = drawn_by(name, source, tmp_path, monkeypatch)
    assert finding.ok == name.endswith("plain") and why in finding.why


def test_properties_of_a_named_tuple_are_looked_at() -> None:
    class View(NamedTuple):
        at: int

        @property
        def seen(self):
            return []

    assert find_flaw(View(1), "view") == "view.seen is a list; use a tuple"


class NoNumber(CorridorEnv):
    def step(self, command):
        return super().step(command)._replace(reward=float("nan"))


class IntMask(CorridorEnv):
    def action_masks(self):
        return super().action_masks().astype(np.int64)


class ListMask(CorridorEnv):
    def action_masks(self):
        return super().action_masks().tolist()


class WithInfo(CorridorEnv):
    """Gives what gymnasium's `reset` gives."""

    def observe(self):
        return super().observe(), {}


class NothingLegal(CorridorEnv):
    def action_masks(self):
        return np.zeros_like(super().action_masks())


class FiveValues(CorridorEnv):
    def step(self, command):
        result = super().step(command)
        return self.observe(), result.reward, result.terminated, result.truncated, {}


@pytest.mark.parametrize(
    ("env", "why"),
    [
        (IntMask, "an array of bool of the shape"),
        (ListMask, "an array of bool of the shape"),
        (WithInfo, "an array of float32 was expected"),
        (NothingLegal, "has no legal one"),
        (FiveValues, "a StepResult(reward, terminated, truncated) was expected"),
    ],
)
def test_it_says_what_an_env_gives_and_what_is_expected(env, why):
    assert any(why in finding.why for finding in check(world_of(env)) if not finding.ok)


def test_a_reward_that_is_no_number_does_not_make_a_world_unrepeatable():
    wrong = [finding.what for finding in check(world_of(NoNumber)) if not finding.ok]
    assert wrong and "episodes repeat" not in wrong


def world_of(env):
    class Broken(CorridorWorld):
        def make(self, task, *, features=None, pixels=False):
            made = super().make(task, features=features, pixels=pixels)
            return env(self, made.task, features or self.default_features)

    return Broken()


class NumpySteps(CorridorEnv):
    def reset(self, seed):
        super().reset(seed)
        self.steps = np.int64(0)


class SharesOfOne(CorridorEnv):
    def pixels(self):
        return super().pixels() / np.float32(255)


class WithoutFrame(CorridorEnv):
    def pixels(self):
        return super().pixels()[1:]


@pytest.mark.parametrize(
    ("env", "why"),
    [
        (NumpySteps, "after 1 env steps, a plain int was expected"),
        (SharesOfOne, "pixels() is float32 (40, 40, 3); uint8 (40, 40, 3) was expected"),
        (WithoutFrame, "pixels() is uint8 (39, 40, 3); uint8 (40, 40, 3) was expected"),
    ],
)
def test_it_sees_counts_and_pictures_that_no_session_could_use(env, why):
    assert any(why in finding.why for finding in check(world_of(env)) if not finding.ok)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ((35, 40, 3), "its pictures have 35 x 40 pixels, and a network needs 36 x 36 at least"),
        ((40, 40), "pixel_shape is (40, 40); (height, width, 3) was expected"),
    ],
)
def test_it_sees_pictures_that_no_network_can_look_at(shape, why):
    class Small(CorridorWorld):
        pixel_shape = shape

    assert [finding.why for finding in check(Small()) if not finding.ok] == [why]


def test_it_sees_a_survey_that_is_no_text():
    class Surveyed(CorridorEnv):
        def survey(self):
            return None

    assert any("survey() gave None" in finding.why for finding in check(world_of(Surveyed)) if not finding.ok)


def test_it_sees_a_jpeg_frame_that_is_none():
    class Raw(CorridorWorld):
        frame_format = "jpeg"

    assert [finding.what for finding in check(Raw()) if not finding.ok] == ["frames are drawn"]
