"""Crafter's tasks: the 22 achievements, named chains, a night to survive, the score."""

from __future__ import annotations

from rlgpt.training.worlds.crafter.names import ACHIEVEMENTS
from rlgpt.training.worlds.protocol import Task

SURVIVED = "survive_night"
NIGHT_OVER = 300
"""Step at which it is as light again as at the start; it is darkest at 210."""

_TABLE = ("collect_wood", "place_table")
_STONE = (*_TABLE, "make_wood_pickaxe", "collect_stone")
_STONE_PICKAXE = (*_STONE, "make_stone_pickaxe")
_FURNACE = (*_STONE, "place_furnace")
_IRON = (*_STONE_PICKAXE, "collect_iron")
_IRON_TOOL = (*_STONE_PICKAXE, "collect_iron", "collect_coal", "place_furnace")
"""Coal is mostly found on the way to the iron, and the furnace is needed where both are held (docs/evidence.md, claim
10)."""

_CHAINS: dict[str, tuple[str, ...]] = {
    "collect_wood": _TABLE[:1],
    "place_table": _TABLE,
    "make_wood_pickaxe": (*_TABLE, "make_wood_pickaxe"),
    "make_wood_sword": (*_TABLE, "make_wood_sword"),
    "collect_stone": _STONE,
    "place_stone": (*_STONE, "place_stone"),
    "collect_coal": (*_STONE[:-1], "collect_coal"),
    "make_stone_pickaxe": _STONE_PICKAXE,
    "make_stone_sword": (*_STONE, "make_stone_sword"),
    "place_furnace": _FURNACE,
    "collect_iron": _IRON,
    "make_iron_pickaxe": (*_IRON_TOOL, "make_iron_pickaxe"),
    "make_iron_sword": (*_IRON_TOOL, "make_iron_sword"),
    "collect_diamond": (*_IRON_TOOL, "make_iron_pickaxe", "collect_diamond"),
    "collect_sapling": ("collect_sapling",),
    "place_plant": ("collect_sapling", "place_plant"),
    "eat_plant": ("collect_sapling", "place_plant", "eat_plant"),
    "collect_drink": ("collect_drink",),
    "eat_cow": ("eat_cow",),
    "wake_up": ("wake_up",),
    "defeat_zombie": ("defeat_zombie",),
    "defeat_skeleton": (*_STONE, "defeat_skeleton"),
}
_PROMPTS = {
    "collect_wood": "Harvest wood from a tree.",
    "place_table": "Place a crafting table.",
    "make_wood_pickaxe": "Make a wooden pickaxe.",
    "make_wood_sword": "Make a wooden sword.",
    "collect_stone": "Mine stone.",
    "place_stone": "Place a stone.",
    "collect_coal": "Mine coal.",
    "make_stone_pickaxe": "Make a stone pickaxe.",
    "make_stone_sword": "Make a stone sword.",
    "place_furnace": "Place a furnace.",
    "collect_iron": "Mine iron.",
    "make_iron_pickaxe": "Make an iron pickaxe.",
    "make_iron_sword": "Make an iron sword.",
    "collect_diamond": "Mine a diamond.",
    "collect_sapling": "Find a sapling in the grass.",
    "place_plant": "Plant a sapling.",
    "eat_plant": "Grow a plant until it is ripe and eat it.",
    "collect_drink": "Drink water.",
    "eat_cow": "Eat a cow.",
    "wake_up": "Sleep until you wake up rested.",
    "defeat_zombie": "Defeat a zombie.",
    "defeat_skeleton": "Defeat a skeleton; they live in the dark tunnels of the mountains.",
}
_SUB_TASKS = {"obtain_diamond": ("make_wood_pickaxe", "make_stone_pickaxe", "make_iron_pickaxe", "collect_diamond")}
"""Long-horizon tasks, and what a planner may order for them."""
_HORIZONS = {"eat_plant": 800, "make_iron_sword": 500}
_OTHER_NAMES = {
    "harvest_wood": "collect_wood",
    "stone_pickaxe": "make_stone_pickaxe",
    "iron_pickaxe": "make_iron_pickaxe",
    "obtain_diamond": "collect_diamond",
}
"""The named chains of the literature."""


def _goal(identifier: str, goal: str) -> Task:
    return Task(
        identifier,
        _PROMPTS[goal],
        _HORIZONS.get(goal, 500),
        _CHAINS[goal],
        long_horizon=identifier in _SUB_TASKS,
        sub_tasks=_SUB_TASKS.get(identifier, ()),
    )


TASKS: dict[str, Task] = (
    {name: _goal(name, name) for name in ACHIEVEMENTS}
    | {name: _goal(name, goal) for name, goal in _OTHER_NAMES.items()}
    | {
        SURVIVED: Task(SURVIVED, "Survive the first night.", NIGHT_OVER, (SURVIVED,), "survive"),
        "crafter_score": Task(
            "crafter_score",
            "Unlock as many of the 22 achievements as you can.",
            10_000,
            ACHIEVEMENTS,
            "score",
        ),
    }
)


def goal_index(task: Task) -> int:
    """Index of the achievement that ends the episode, -1: none does."""
    return ACHIEVEMENTS.index(task.milestones[-1]) if task.kind == "goal" else -1
