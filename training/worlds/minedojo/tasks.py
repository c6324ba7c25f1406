"""Tasks: the client's 1,572 programmatic ones, its meta tasks with arguments, and the paper's with Plan4MC's settings.

A meta task is named with its arguments like a query: `harvest?target_names=log&target_quantities=8`. A sub-task of
a long task is named `task/milestone`: the same start, done when that milestone is reached. MineDojo has no time limit
of its own and no death rule; the horizons here are ours unless a source is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import parse_qsl

from rlgpt.training.worlds.protocol import Task, UnknownTask

Goal = Literal["client", "near_table", "near_furnace", "milestone"]
META = ("harvest", "combat", "techtree")
SHORT, FIGHT, LONG, TECH = 200, 500, 3000, 10000
"""Horizons in env steps: with animals and a tool at the start, of a fight or an easy harvest, of any other harvest, of
a tech tree task; see `choose_horizon`."""
DIAMOND = 18000
"""Env steps of MineRL's ObtainDiamond, 15 minutes of the game."""
SOURCES = {
    "milk_bucket": "cow", "wool": "sheep", "beef": "cow", "leather": "cow", "mutton": "sheep", "porkchop": "pig",
    "chicken": "chicken", "feather": "chicken", "cobblestone": "stone", "coal": "coal_ore", "diamond": "diamond_ore",
    "redstone": "redstone_ore", "planks": "log", "stick": "log", "crafting_table": "log", "bed": "sheep",
    "wooden_pickaxe": "log", "stone_pickaxe": "stone", "furnace": "stone", "iron_ingot": "iron_ore",
    "rotten_flesh": "zombie", "bone": "skeleton", "string": "spider", "gunpowder": "creeper", "egg": "chicken",
}  # fmt: skip
"""Item -> the block or animal that it comes from, where that is not the item's own block."""
PICKAXES = ("wooden_pickaxe", "golden_pickaxe", "stone_pickaxe", "iron_pickaxe", "diamond_pickaxe")
"""From the weakest; gold breaks what wood does."""
MINED_WITH = {
    "cobblestone": "wooden_pickaxe", "coal": "wooden_pickaxe", "iron_ore": "stone_pickaxe",
    "gold_ore": "iron_pickaxe", "diamond": "iron_pickaxe", "redstone": "iron_pickaxe",
}  # fmt: skip
"""Raw item -> the weakest pickaxe that gets it: a block broken with a weaker one, or by hand, drops nothing. The
client's recipes do not say so."""


@dataclass(frozen=True)
class ClientTask:
    """A task and how the client makes it."""

    task: Task
    client_id: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    goal: Goal = "client"
    target: str = ""
    """What the agent looks for first: the default argument of the distance reward and of the `target` feature."""
    guidance: str = ""
    chain: tuple[str, ...] = ()
    """The milestones of the whole task, where this is a sub-task: they say how much of an item later ones need."""


def split_count(milestone: str) -> tuple[int, str]:
    """(3, "wool") of "3 wool", (1, "log") of "log"."""
    count, _, item = milestone.partition(" ")
    return (int(count), item) if item and count.isdigit() else (1, milestone)


def source_of(milestone: str) -> str:
    """The block or entity that the agent must find to reach a milestone."""
    item = split_count(milestone)[1]
    return {"near_table": "crafting_table", "near_furnace": "furnace"}.get(item) or SOURCES.get(item, item)


def _paper(
    name: str, prompt: str, biome: str, horizon: int, item: str, chain: tuple[str, ...],
    start: Mapping[str, Mapping[str, Any]] | None = None, goal: Goal = "client", animals: bool = False,
) -> ClientTask:  # fmt: skip
    """One of the paper's tasks; biome, start and horizon are Plan4MC's."""
    arguments: dict[str, Any] = {"specified_biome": biome}
    if goal == "client":
        arguments |= {"target_names": item, "target_quantities": 1}
    else:
        arguments |= {"generate_world_type": "specified_biome", "fast_reset": True}
    if start:
        arguments["initial_inventory"] = start
    if animals:
        arguments |= {
            "initial_mobs": ["cow"] * 3 + ["sheep"] * 3,
            "initial_mob_spawn_range_low": [-30, 1, -30],
            "initial_mob_spawn_range_high": [30, 1, 30],
        }
    sub_tasks = tuple(f"{name}/{milestone}" for milestone in chain[:-1])
    task = Task(name, prompt, horizon, chain, long_horizon=len(chain) > 2, sub_tasks=sub_tasks, start=start or {})
    return ClientTask(task, "harvest" if goal == "client" else "open-ended", arguments, goal, source_of(chain[0]))


_TABLE = {"mainhand": {"name": "crafting_table"}}
_WOOD = ("log", "planks", "stick")

PAPER: Mapping[str, ClientTask] = MappingProxyType({
    client_task.task.id: client_task
    for client_task in (
        _paper("paper_stick", "Craft a stick.", "plains", 3000, "stick", _WOOD),
        _paper("paper_crafting_table_nearby", "Place a crafting table nearby.", "plains", 3000, "crafting_table",
               ("log", "planks", "crafting_table", "near_table"), goal="near_table"),
        _paper("paper_wooden_pickaxe", "Craft a wooden pickaxe.", "forest", 3000, "wooden_pickaxe",
               (*_WOOD, "crafting_table", "near_table", "wooden_pickaxe")),
        _paper("paper_furnace_nearby", "Place a furnace nearby.", "extreme_hills", 5000, "furnace",
               ("planks", "stick", "crafting_table", "near_table", "wooden_pickaxe", "8 cobblestone", "furnace",
                "near_furnace"), {"mainhand": {"name": "log", "quantity": 10}}, goal="near_furnace"),
        _paper("paper_stone_pickaxe", "Craft a stone pickaxe.", "forest_hills", 10000, "stone_pickaxe",
               ("3 cobblestone", *_WOOD, "crafting_table", "near_table", "stone_pickaxe"),
               {"mainhand": {"name": "wooden_pickaxe"}}),
        _paper("paper_milk", "Obtain milk from a cow.", "plains", 3000, "milk_bucket",
               ("near_table", "bucket", "milk_bucket"),
               {**_TABLE, "1": {"name": "iron_ingot", "quantity": 3}}, animals=True),
        _paper("paper_wool", "Shear a sheep.", "plains", 3000, "wool", ("shears", "wool"),
               {**_TABLE, "1": {"name": "iron_ingot", "quantity": 2}}, animals=True),
        _paper("paper_beef", "Hunt a cow for beef.", "plains", 3000, "beef", ("beef",),
               {"mainhand": {"name": "diamond_sword"}}, animals=True),
        _paper("paper_mutton", "Hunt a sheep for mutton.", "plains", 3000, "mutton", ("mutton",),
               {"mainhand": {"name": "diamond_sword"}}, animals=True),
        _paper("paper_bed", "Craft a bed.", "plains", 10000, "bed",
               ("3 wool", "log", "planks", "near_table", "bed"),
               {**_TABLE, "1": {"name": "shears"}}, animals=True),
        _paper("obtain_diamond", "Obtain a diamond, starting with nothing.", "plains", DIAMOND, "diamond",
               ("log", "planks", "stick", "crafting_table", "near_table", "wooden_pickaxe", "11 cobblestone",
                "stone_pickaxe", "furnace", "3 iron_ore", "near_furnace", "3 iron_ingot", "iron_pickaxe",
                "diamond")),
    )
})  # fmt: skip
"""The paper's ten tasks and ObtainDiamond."""

STARTERS: Mapping[str, tuple[str, str, str]] = MappingProxyType({
    "harvest_milk_with_empty_bucket_and_cow": ("Obtain milk from a cow with an empty bucket and a cow nearby.",
                                               "milk_bucket", "bucket"),
    "harvest_wool_with_shears_and_sheep": ("Shear a sheep with shears and a sheep nearby.", "wool", "shears"),
    "harvest_1_log_forest": ("Obtain a log in a forest.", "log", ""),
})  # fmt: skip
"""Client tasks that are listed even before the client is installed, because the paper's short runs are these:
prompt, item, tool in the hand."""


def choose_horizon(spec: Mapping[str, Any], steps: int = 1) -> int:
    """Our time limit of a client task with so many milestones. 200 for the paper's milk and wool settings."""
    kind = str(spec.get("__cls__", "harvest"))
    if kind == "combat":
        return FIGHT
    if kind != "harvest":
        return TECH
    if spec.get("initial_mobs") and spec.get("initial_inventory"):
        return SHORT
    quantity = spec.get("target_quantities", 1)
    easy = SOURCES.get(str(spec.get("target_names")), "") in ("", "cow", "sheep", "pig", "chicken")
    return FIGHT if easy and quantity == 1 and steps <= 2 else LONG


def _first(value: Any) -> str:
    return str(value[0] if isinstance(value, list) else value)


def goal_name(spec: Mapping[str, Any]) -> str:
    """The milestone that is the client's own success test."""
    kind = str(spec.get("__cls__", "harvest"))
    if kind == "combat":
        return f"kill {_first(spec['target_names'])}"
    if kind == "techtree":
        return f"use {spec.get('tech_item') or spec.get('tech')}"
    if kind != "harvest":
        return "success"
    quantity, item = spec.get("target_quantities", 1), _first(spec["target_names"])
    return item if quantity == 1 else f"{quantity} {item}"


def from_client(task: str, entry: Mapping[str, Any], chain: tuple[str, ...] = ()) -> ClientTask:
    """A programmatic task from its entry in the client's list."""
    spec = entry["spec"]
    goal = goal_name(spec)
    kind = str(spec.get("__cls__", "harvest"))
    item = _first(spec["target_names"]) if kind in ("harvest", "combat") else str(spec.get("tech_item") or "")
    steps = (*(name for name in chain if name != goal), goal)
    target = item if kind == "combat" else SOURCES.get(item) or source_of(steps[0])
    prompt = str(entry["prompt"]).strip()
    task_description = Task(
        task, prompt[:1].upper() + prompt[1:].rstrip(".") + ".", choose_horizon(spec, len(steps)), steps,
        kind="survive" if kind == "survival" else "goal", long_horizon=len(steps) > 2,
        sub_tasks=tuple(f"{task}/{name}" for name in steps[:-1]) if len(steps) > 2 else (),
        start=spec.get("initial_inventory", {}),
    )  # fmt: skip
    return ClientTask(task_description, task, {}, target=target, guidance=str(entry["guidance"]))


def _value(text: str) -> Any:
    return int(text) if re.fullmatch("-?[0-9]+", text) else {"true": True, "false": False}.get(text, text)


def _count(task: str, name: str, value: Any) -> int:
    """Raises `UnknownTask` for what is no whole number above 0."""
    if type(value) is not int or value < 1:
        raise UnknownTask(f"{task!r} has {name}={value}; it must be a whole number above 0.")
    return value


def start_inventory(task: str, text: Any) -> dict[str, dict[str, Any]]:
    """Slots of `start=log:1,crafting_table:1`, the first in the hand. Raises `UnknownTask` with the sentence."""
    slots: dict[str, dict[str, Any]] = {}
    for number, part in enumerate(text if isinstance(text, list) else [text]):
        name, _, count = str(part).partition(":")
        if not name or (count and not re.fullmatch("[0-9]+", count)) or number > 35:
            raise UnknownTask(f"{task!r} has a start that cannot be read; write it like start=log:1,crafting_table:1.")
        slots[str(number) if number else "mainhand"] = {"name": name, "quantity": int(count or 1)}
    return slots


def parse_meta(task: str) -> ClientTask:
    """A meta task with arguments. Raises `UnknownTask` with the sentence."""
    kind, _, query = task.partition("?")
    arguments: dict[str, Any] = {}
    for name, text in parse_qsl(query):
        values = [_value(part) for part in text.split(",")]
        arguments[name] = values if len(values) > 1 else values[0]
    needed: tuple[str, ...] = ("target_names", "target_quantities")
    if kind == "techtree":
        needed = () if "tech" in arguments else ("tech_item",)
    missing = [name for name in needed if name not in arguments]
    if missing:
        example = "harvest?target_names=log&target_quantities=8"
        raise UnknownTask(f"{task!r} needs {' and '.join(missing)}, such as {example!r}.")
    horizon = _count(task, "horizon", arguments.pop("horizon")) if "horizon" in arguments else None
    quantities = arguments.get("target_quantities", 1)
    for quantity in quantities if isinstance(quantities, list) else [quantities]:
        _count(task, "target_quantities", quantity)
    if "initial_inventory" in arguments:
        raise UnknownTask(f"{task!r} has initial_inventory; write what one starts with like start=log:1.")
    if "start" in arguments:
        arguments["initial_inventory"] = start_inventory(task, arguments.pop("start"))
    spec = {"__cls__": kind, **arguments}
    goal = goal_name(spec)
    words = goal.replace("_", " ")
    prompt = words if kind == "combat" else f"obtain {words}"
    client_task = from_client(task, {"spec": spec, "guidance": "", "prompt": prompt})
    if horizon is not None:
        client_task = replace(client_task, task=replace(client_task.task, horizon=horizon))
    return replace(client_task, client_id=kind, arguments=arguments)


class TaskList(Mapping[str, Task]):
    """Every task of the world by id. The client's own are there once it was installed and asked.

    Iteration gives the paper's tasks, then the client's; meta tasks with arguments can be looked up, not listed.
    """

    def __init__(self, catalogue: Mapping[str, Any]) -> None:
        self.catalogue = catalogue
        self._tasks_by_id: dict[str, ClientTask] = dict(PAPER)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        listed: Mapping[str, Any] = self.catalogue.get("tasks", {})
        return (*PAPER, *STARTERS, *(task for task in listed if task not in STARTERS))

    def client_task(self, task: str) -> ClientTask:
        """Raises `UnknownTask`."""
        if task not in self._tasks_by_id:
            self._tasks_by_id[task] = self._make(task)
        return self._tasks_by_id[task]

    def _make(self, task: str) -> ClientTask:
        listed: Mapping[str, Any] = self.catalogue.get("tasks", {})
        if task in listed:
            return from_client(task, listed[task], self._chain(listed[task]["spec"]))
        if task in STARTERS:
            prompt, item, tool = STARTERS[task]
            spec = {
                "target_names": item,
                "initial_mobs": SOURCES.get(item, ""),
                "initial_inventory": {"mainhand": {"name": tool}} if tool else {},
            }
            return from_client(task, {"spec": spec, "prompt": prompt, "guidance": ""})
        parent, slash, milestone = task.rpartition("/")
        if slash:
            return self._sub_task(self.client_task(parent), milestone)
        if task.partition("?")[0] in META:
            return self._with_chain(parse_meta(task))
        hint = "" if listed else " (the client's own list appears after `rlgpt minedojo install`)"
        raise UnknownTask(f"MineDojo has no task called {task!r}{hint}.")

    def _sub_task(self, whole: ClientTask, milestone: str) -> ClientTask:
        """The same start, done at an earlier milestone."""
        chain = whole.task.milestones
        if milestone not in chain[:-1]:
            raise UnknownTask(f"{whole.task.id!r} has no milestone {milestone!r} before its goal.")
        until = chain[: chain.index(milestone) + 1]
        task = replace(
            whole.task, id=f"{whole.task.id}/{milestone}", milestones=until, sub_tasks=(), long_horizon=False,
            prompt=f"On the way to: {whole.task.prompt} Reach: {milestone.replace('_', ' ')}.",
        )  # fmt: skip
        return replace(whole, task=task, goal="milestone", target=source_of(until[0]), chain=chain)

    def _with_chain(self, client_task: ClientTask) -> ClientTask:
        """A meta task with the milestones that the client's recipes put before its goal."""
        spec = {"__cls__": client_task.client_id, **client_task.arguments}
        chain = self._chain(spec)
        goal = client_task.task.milestones[-1]
        steps = (*(name for name in chain if name != goal), goal)
        sub_tasks = tuple(f"{client_task.task.id}/{name}" for name in steps[:-1]) if len(steps) > 2 else ()
        chosen = "horizon" in dict(parse_qsl(client_task.task.id.partition("?")[2]))
        horizon = client_task.task.horizon if chosen else choose_horizon(spec, len(steps))
        return replace(
            client_task, target=source_of(steps[0]) if client_task.client_id != "combat" else client_task.target,
            task=replace(client_task.task, milestones=steps, sub_tasks=sub_tasks, horizon=horizon,
                         long_horizon=len(steps) > 2),
        )  # fmt: skip

    def _chain(self, spec: Mapping[str, Any]) -> tuple[str, ...]:
        """What has to be made on the way to a crafted item, raw things first, from the client's recipes."""
        recipes: Mapping[str, Any] = self.catalogue.get("recipes", {})
        harvested = _first(spec["target_names"]) if spec.get("__cls__") == "harvest" else ""
        item = str(spec.get("tech_item") or harvested)
        owned = {str(entry["name"]) for entry in spec.get("initial_inventory", {}).values()}
        chain: list[str] = []
        under_way: set[str] = set()  # some recipes go in circles: wheat, bales of hay, wheat

        def visit(name: str) -> None:
            if name in chain or name in owned or name in under_way:
                return
            under_way.add(name)
            weakest = MINED_WITH.get(name)
            if weakest and not {*chain, *owned} & {*PICKAXES[PICKAXES.index(weakest) :]}:
                visit(weakest)
            recipe = recipes.get(name)
            if recipe is not None and (name not in SOURCES or name in CRAFTED):
                for need in recipe["needs"]:
                    visit(need)
                if recipe["near"]:
                    visit(recipe["near"])
                    visit("near_table" if recipe["near"] == "crafting_table" else "near_furnace")
            chain.append(name)

        if item in recipes:
            visit(item)
        return tuple(chain)

    def __getitem__(self, task: str) -> Task:
        return self.client_task(task).task

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


CRAFTED = ("planks", "stick", "crafting_table", "wooden_pickaxe", "stone_pickaxe", "furnace", "iron_ingot", "bed")
