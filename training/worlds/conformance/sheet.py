"""Promises of the world sheet: plain data, in the forms that prompts, agents and planners read."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from math import isfinite
from typing import Any, cast

from pydantic import ValidationError

from rlgpt import prompts
from rlgpt.agents.contracts import Hyperparameters, RewardTerm, RlConfigReply, SubActionReply
from rlgpt.agents.rules.book import reached_attribute
from rlgpt.agents.rules.coding import HYPERPARAMETERS
from rlgpt.training.worlds.conformance.promise import Broken, expect, longest_task
from rlgpt.training.worlds.protocol import HostSide, World

PARTS: Mapping[str, type | tuple[type, ...]] = {
    "items": (list, tuple), "recipes": (list, tuple), "primitives": (list, tuple), "view_doc": str, "library_doc": str,
    "dangers": (list, tuple), "milestones": (list, tuple), "scripts": (list, tuple), "limits": dict,
}  # fmt: skip
SCRIPT = ("name", "goal", "done_when", "sources", "gives")
NUMBERS = ("games_at_once", "option_cap")
"""Of `limits`, where they are there."""


def check_sheet(world: World) -> str:
    unclear: dict[str, None] = {}
    for task in world.tasks:
        sheet: dict[str, Any] = world.sheet(task)
        missing = [name for name in PARTS if name not in sheet]
        expect(not missing, f"the sheet lacks {', '.join(missing)}")
        flaw = json_flaw(sheet, f"sheet({task!r})")
        expect(not flaw, flaw)
        for name, form in PARTS.items():
            expected = "a text" if form is str else "a dict" if form is dict else "a list"
            expect(isinstance(sheet[name], form), f"{name} of {task} is {sheet[name]!r:.60}, {expected} was expected")
        _check_entries(sheet, task)
        listed = [entry["name"] for entry in sheet["primitives"]]
        expect(listed == [p.name for p in world.primitives], "the sheet's primitives differ from the world's")
        milestones = {_name(entry): entry for entry in sheet["milestones"]}
        lacking = set(world.tasks[task].milestones) - set(milestones)
        expect(not lacking, f"the sheet of {task} lacks the milestones {', '.join(sorted(lacking))}")
        shown = bool(reached_attribute(sheet["view_doc"]))
        given = {name for script in sheet["scripts"] for name in script["gives"]}
        for name in world.tasks[task].milestones:
            entry = milestones[name]
            if not shown and name not in given and not (isinstance(entry, dict) and entry.get("done_when")):
                unclear[name] = None
        _render(sheet, task)
    _expect_tests(world)
    if unclear:
        told = f"the milestones {', '.join(unclear)} have no done_when"
        return f"complete, plain data; {told}: nobody can tell from a view whether they are reached"
    return "complete, plain data"


def _expect_tests(world: World) -> None:
    """Expressions use what a view and the library have; what else they raise may depend on the state."""
    tests: dict[str, str] = {}
    for task in world.tasks:
        sheet: Mapping[str, Any] = world.sheet(task)
        for entry in (entry for part in ("milestones", "scripts") for entry in sheet[part] if isinstance(entry, dict)):
            for name in ("done_when", "trigger"):
                tests.setdefault(entry.get(name, "").strip(), f"{name} of {entry['name']!r} of {task}")
    host = cast(HostSide, import_module(world.host_module))
    env = world.make(longest_task(world))
    env.reset(9)
    view = host.decoder().view(env.view(True))
    env.close()
    for expression, told in tests.items():
        try:
            eval(expression or "True", dict(host.LIBRARY) | {"start": view, "view": view})
        except SyntaxError as error:
            raise Broken(f"{told} is no expression: {error.msg}") from error
        except NameError as error:
            raise Broken(f"{told} uses {error.name}, which the library has not") from error
        except AttributeError as error:
            expect(error.obj is not view, f"{told} uses view.{error.name}, which a view has not")
        except Exception:
            continue


def json_flaw(value: object, place: str) -> str:
    """The sentence on what would not come back from JSON as it is, with its place; "" if all would. A tuple comes back
    as a list, which nobody tells apart."""
    if type(value) is dict:
        for key in value:
            if type(key) is not str:
                return f"the key {key!r} of {place} is a {type(key).__name__}, and keys must be texts"
        parts = [(part, f"{place}[{key!r}]") for key, part in value.items()]
    elif type(value) in (list, tuple):
        parts = [(part, f"{place}[{index}]") for index, part in enumerate(value)]  # type: ignore[arg-type, var-annotated]
    elif type(value) is float and not isfinite(value):
        return f"{place} is {value}, and numbers must be finite"
    elif type(value) not in (str, int, float, bool, type(None)):
        return f"{place} is a {type(value).__name__}; plain dicts, lists, texts, numbers, True, False and None go"
    else:
        return ""
    return next(filter(None, (json_flaw(part, inner) for part, inner in parts)), "")


def _check_entries(sheet: Mapping[str, Any], task: str) -> None:
    for part, needed in (
        ("items", ("name",)), ("recipes", ("name",)), ("primitives", ("name", "doc")), ("dangers", ("name", "doc")),
        ("milestones", ("name",)), ("scripts", SCRIPT),
    ):  # fmt: skip
        may_be_text = part not in ("recipes", "primitives", "scripts")
        for index, entry in enumerate(sheet[part]):
            told = f"{part}[{index}] of {task}"
            if may_be_text and isinstance(entry, str):
                continue
            forms = f"{'a text or ' if may_be_text else ''}a dict with {', '.join(needed)}"
            if not isinstance(entry, dict):
                raise Broken(f"{told} is {entry!r:.60}, {forms} was expected")
            lacking = [name for name in needed if name not in entry]
            expect(not lacking, f"{told} lacks {', '.join(lacking)}: {forms} was expected")
            for name in ("name", "doc", "goal", "done_when", "trigger"):
                text = entry.get(name, "")
                expect(isinstance(text, str), f"{name} of {told} is {text!r:.60}, a text was expected")
    for index, script in enumerate(sheet["scripts"]):
        for name in ("sources", "needs", "gives"):
            texts = script.get(name, ())
            right = isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts)
            expect(right, f"{name} of scripts[{index}] of {task} is {texts!r:.60}, a list of texts was expected")
        flaw = plan_flaw(script["name"], script["done_when"], script.get("trigger", ""))
        expect(not flaw, f"scripts[{index}] of {task}: {flaw}")
    for index, recipe in enumerate(sheet["recipes"]):
        for name in ("needs", "requires", "near", "gives"):
            things = recipe.get(name) or ()
            # A text is fine where it is one thing; elsewhere its letters would be taken for things.
            right = isinstance(things, (dict, list, tuple)) or (name in ("near", "gives") and isinstance(things, str))
            told = f"{name} of recipes[{index}] of {task} is {things!r:.60}"
            expect(right, f"{told}, a dict with amounts or a list of names was expected")
    for name in NUMBERS:
        number = sheet["limits"].get(name, 1)
        expect(type(number) is int and number > 0, f"limits[{name!r}] of {task} is {number!r}, no whole number above 0")
    flaw = _advice_flaw(sheet)
    expect(not flaw, f"the sheet of {task}: {flaw}")


def _advice_flaw(sheet: Mapping[str, Any]) -> str:
    """What no RL configuration could hold of the advice and the cap of options; "" where one can."""
    advised = sheet.get("advised_rl") or {}
    if not isinstance(advised, dict):
        return f"advised_rl is {advised!r:.60}, a dict was expected"
    own, inner = ("plan_prior", "primitive_steps", "env_steps"), ("learning_rate", *HYPERPARAMETERS)
    if unknown := sorted(advised.keys() - {*own, *inner, "rollout"}):
        return f"advised_rl names {', '.join(unknown)}, which nobody reads"
    rollout = advised.get("rollout", 128)
    if type(rollout) is not int or rollout < 128:
        return f"advised_rl['rollout'] is {rollout!r}, a whole number of at least 128 was expected"
    fields = {name: advised[name] for name in own if name in advised}
    if "option_cap" in sheet["limits"]:
        fields["option_cap"] = sheet["limits"]["option_cap"]
    try:
        Hyperparameters(**{name: advised[name] for name in inner if name in advised})
        RlConfigReply(
            target="", observation=["x"], reward=[RewardTerm(term="task", weight=1)], primitives=[], options=[],
            horizon=10, **{"env_steps": 0, **fields},
        )  # fmt: skip
    except ValidationError as error:
        first = error.errors()[0]
        name = first["loc"][0]
        place = "limits" if name == "option_cap" else "advised_rl"
        return f"{place}[{name!r}] is {first['input']!r:.60}: {first['msg']}"
    return ""


def plan_flaw(name: str, done_when: str, trigger: str) -> str:
    """Why no plan could hold this script; "" where one can."""
    try:
        SubActionReply(name=name, mode="code", goal="", reason="", trigger=trigger, done_when=done_when, max_steps=1)
    except ValidationError as error:
        first = error.errors()[0]
        field, given = first["loc"][0], str(first["input"])
        if field == "name":
            why = "lower-case letters, digits and underscores, a letter first, at most 40 characters were expected"
            return f"no plan can hold the script name {given!r:.60}: {why}"
        most = first.get("ctx", {}).get("max_length")
        return f"no plan can hold the {field} of script {name!r}: it has {len(given)} characters, at most {most} go"
    return ""


def _render(sheet: Mapping[str, Any], task: str) -> None:
    parts = {name: sheet[name] for name in ("primitives", "view_doc", "library_doc", "dangers", "scripts")}
    try:
        prompts.render("world_sheet", facts=dict(sheet), features={}, **parts).encode()
    except Exception as error:
        raise Broken(f"the sheet of {task} cannot be written for a model: {type(error).__name__}: {error}") from error


def _name(entry: Any) -> str:
    return str(entry["name"] if isinstance(entry, dict) else entry)
