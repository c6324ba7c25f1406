"""What the request says about the world: scripts, recipes, milestones, and what has to come before what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlgpt.agents.rules.question import Question


@dataclass(frozen=True)
class ScriptEntry:
    """One entry of the script book."""

    name: str
    goal: str
    done_when: str
    sources: tuple[str, ...]
    """Empty in a table of contents."""
    versions: int
    needs: tuple[str, ...]
    gives: tuple[str, ...]
    hard: bool
    trigger: str
    """Of an action to be offered to a policy; empty otherwise."""


@dataclass(frozen=True)
class Step:
    """Something a plan may hold: a script, or a milestone that no script reaches."""

    name: str
    goal: str
    done_when: str
    script: ScriptEntry | None

    @property
    def hard(self) -> bool:
        return self.script is None or self.script.hard


NEVER = "False"
"""The predicate of a milestone that the view does not show."""


class Book:
    def __init__(self, question: Question) -> None:
        world = question.world
        entries: Sequence[Mapping[str, Any]] = question.get("scripts") or ()
        self.scripts = tuple(_script(entry) for entry in entries)
        self._milestones = {_name(m): m for m in world.get("milestones") or ()}
        self._recipes = {_name(r): r for r in world.get("recipes") or () if isinstance(r, Mapping)}
        self._score = world.get("kind") == "score"
        self._reached = reached_attribute(question.texts.get("view", ""))
        self.goals: tuple[str, ...] = _goals(world)

    def script(self, name: str, done_when: str = "") -> ScriptEntry | None:
        """By name, by the milestone it gives, by its predicate."""
        for fits in (
            lambda s: s.name == name,
            lambda s: name in s.gives,
            lambda s: bool(done_when) and s.done_when == done_when,
        ):
            match = next((script for script in self.scripts if fits(script)), None)
            if match:
                return match
        return None

    def steps(self, goals: Iterable[str]) -> list[Step]:
        """Everything the goals need, in an order in which each comes after what it needs."""
        out: list[Step] = []
        self._visit_all(goals, out, set())
        return out

    def plan(self) -> list[Step]:
        """The steps to the goals. For a score, whose milestones need not lead to each other, those that the script book
        has come first, in its order and not marked as hard, since its author knows what is near and what takes long."""
        if not self._score:
            return self.steps(self.goals)

        def order(goal: str) -> tuple[bool, int]:
            script = self.script(goal)
            return (script is None or script.hard, self.scripts.index(script) if script else 0)

        return self.steps(sorted(self.goals, key=order))

    def offered(self, present: Iterable[str]) -> list[ScriptEntry]:
        """The actions for a policy whose needs are all present."""
        names = set(present)
        return [script for script in self.scripts if script.trigger and names.issuperset(script.needs)]

    def needed(self, names: Iterable[str]) -> set[str]:
        """Those of the steps to `names` that another one of them needs."""
        return {step.name for name in names for step in self.steps([name])[:-1]}

    def missing_before(self, name: str, present: Iterable[str]) -> list[Step]:
        """What `name` needs and `present` lacks, in order."""
        have = set(present) | {name}
        return [step for step in self.steps([name]) if step.name not in have]

    def _visit_all(self, names: Iterable[str], out: list[Step], seen: set[str]) -> None:
        for name in names:
            self._visit(name, out, seen)

    def _visit(self, name: str, out: list[Step], seen: set[str]) -> None:
        script = self.script(name)
        key = script.name if script else name
        if key in seen:
            return
        seen.add(key)
        if script:
            self._visit_all(script.needs, out, seen)
            for milestone in script.gives or (script.name,):
                self._visit_all(self._ingredients(milestone), out, seen)
            out.append(Step(script.name, script.goal, script.done_when, script))
            return
        self._visit_all(self._ingredients(name), out, seen)
        if name in self._milestones or name in self._recipes:
            out.append(self._milestone(name))

    def _milestone(self, name: str) -> Step:
        entry = self._milestones.get(name)
        facts: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
        goal = str(facts.get("doc") or f"Reach the milestone {name.replace('_', ' ')}.")
        predicate = f'"{name}" in view.{self._reached}' if self._reached else NEVER
        return Step(sub_action_name(name), goal, str(facts.get("done_when") or predicate), None)

    def _ingredients(self, milestone: str) -> list[str]:
        """Milestones or scripts that yield what a milestone's recipe needs, tools and places first."""
        recipe = self._recipes.get(milestone)
        if recipe is None:
            return []
        needs: Any = recipe.get("needs") or {}
        near: Any = recipe.get("near") or ()
        tools: Any = recipe.get("requires") or recipe.get("require") or ()
        items = [*tools, *([near] if isinstance(near, str) else near), *needs]
        sources = (self._source_of(str(item), milestone) for item in items)
        return [name for name in sources if name]

    def _source_of(self, item: str, excluded: str) -> str:
        """The milestone, recipe or script that yields an item: said by `gives`, else the one named after it."""
        for name, recipe in self._recipes.items():
            if name != excluded and item in _as_names(recipe.get("gives")):
                return name
        names = [*self._milestones, *self._recipes, *(script.name for script in self.scripts)]
        named = (n for n in names if n != excluded and (n == item or n.endswith(f"_{item}")))
        return next(named, "")


_REACHED = re.compile(r"^view\.(\w+): .*\b(?:achievements|milestones)\b.*\b(?:unlocked|reached)\b", re.M | re.I)


def reached_attribute(view_doc: str) -> str:
    """The view's attribute that holds the names of the milestones reached, if its documentation has one."""
    match = _REACHED.search(view_doc)
    return match.group(1) if match else ""


def _goals(world: Mapping[str, Any]) -> tuple[str, ...]:
    """The milestones that lead to the task, in their usual order; a task without any is its own."""
    return tuple(map(str, world.get("task_milestones") or ())) or (str(world.get("task", "")),)


def _script(entry: Mapping[str, Any]) -> ScriptEntry:
    return ScriptEntry(
        name=str(entry["name"]),
        goal=str(entry["goal"]),
        done_when=str(entry["done_when"]),
        sources=tuple(map(str, entry.get("sources") or ())),
        versions=int(entry.get("versions") or len(entry.get("sources") or ())),
        needs=tuple(map(str, entry.get("needs") or ())),
        gives=tuple(map(str, entry.get("gives") or ())),
        hard=bool(entry.get("hard", False)),
        trigger=str(entry.get("trigger", "")),
    )


def _name(entry: object) -> str:
    return str(entry["name"]) if isinstance(entry, Mapping) else str(entry)


def _as_names(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(name) for name in value] if isinstance(value, (Mapping, list, tuple)) else []


def sub_action_name(text: str) -> str:
    """A text as the name of a sub-action: lower-case, digits, underscores, a letter first, at most 40."""
    name = re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_")
    return (name if name[:1].isalpha() else f"reach_{name}")[:40]
