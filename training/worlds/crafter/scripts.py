"""The script book: every milestone's entry, in the order in which a plan would hold them."""

from __future__ import annotations

from rlgpt.training.worlds.crafter.book import crafting, gathering, living
from rlgpt.training.worlds.protocol import Script


def _script(
    name: str,
    goal: str,
    done_when: str,
    sources: tuple[str, ...],
    needs: tuple[str, ...] = (),
    gives: tuple[str, ...] | None = None,
) -> Script:
    texts = tuple(source.strip() + "\n" for source in sources)
    return Script(name, goal, done_when, texts, needs, (name,) if gives is None else gives)


def _has(item: str) -> str:
    return f'view.inventory["{item}"] >= 1'


def _done(milestone: str) -> str:
    return f'"{milestone}" in view.achieved'


SCRIPTS: tuple[Script, ...] = (
    _script(
        "collect_wood",
        "Collect 8 wood from trees.",
        'view.inventory["wood"] >= 8 or "place_table" in view.achieved',
        gathering.COLLECT_WOOD,
    ),
    _script(
        "place_table",
        "Place a table, which takes 2 wood.",
        _done("place_table"),
        crafting.PLACE_TABLE,
        ("collect_wood",),
    ),
    _script(
        "make_wood_pickaxe",
        "Make a wood pickaxe at the table.",
        _has("wood_pickaxe"),
        crafting.MAKE_WOOD_PICKAXE,
        ("place_table",),
    ),
    _script(
        "make_wood_sword",
        "Make a wood sword at the table.",
        _has("wood_sword"),
        crafting.MAKE_WOOD_SWORD,
        ("place_table",),
    ),
    _script(
        "collect_stone",
        "Mine a stone.",
        f'{_has("stone")} or "make_stone_pickaxe" in view.achieved',
        gathering.COLLECT_STONE,
        ("make_wood_pickaxe",),
    ),
    _script(
        "place_stone",
        "Place a stone.",
        _done("place_stone"),
        crafting.PLACE_STONE,
        ("collect_stone",),
    ),
    _script(
        "make_stone_pickaxe",
        "Make a stone pickaxe at a table.",
        _has("stone_pickaxe"),
        crafting.MAKE_STONE_PICKAXE,
        ("collect_stone",),
    ),
    _script(
        "make_stone_sword",
        "Make a stone sword at a table.",
        _has("stone_sword"),
        crafting.MAKE_STONE_SWORD,
        ("collect_stone",),
    ),
    _script(
        "collect_coal",
        "Mine a coal.",
        f'{_has("coal")} or "make_iron_pickaxe" in view.achieved or "make_iron_sword" in view.achieved',
        gathering.COLLECT_COAL,
        ("make_wood_pickaxe",),
    ),
    _script(
        "collect_iron",
        "Mine an iron.",
        f'{_has("iron")} or "make_iron_pickaxe" in view.achieved or "make_iron_sword" in view.achieved',
        gathering.COLLECT_IRON,
        ("make_stone_pickaxe", "make_stone_sword"),
    ),
    _script(
        "place_furnace",
        "Place a furnace next to a table, which takes 4 stone.",
        _done("place_furnace"),
        crafting.PLACE_FURNACE,
        ("collect_stone",),
    ),
    _script(
        "make_iron_pickaxe",
        "Make an iron pickaxe at a table and a furnace.",
        _has("iron_pickaxe"),
        crafting.MAKE_IRON_PICKAXE,
        ("collect_coal", "collect_iron"),
    ),
    _script(
        "make_iron_sword",
        "Make an iron sword at a table and a furnace.",
        _has("iron_sword"),
        crafting.MAKE_IRON_SWORD,
        ("collect_coal", "collect_iron"),
    ),
    _script(
        "collect_diamond",
        "Mine a diamond.",
        _has("diamond"),
        gathering.COLLECT_DIAMOND,
        ("make_iron_pickaxe",),
    ),
    _script("collect_drink", "Drink water.", _done("collect_drink"), living.DRINK),
    _script("eat_cow", "Eat a cow.", _done("eat_cow"), living.EAT_COW),
    _script("wake_up", "Sleep until rested.", _done("wake_up"), living.SLEEP),
    _script(
        "collect_sapling",
        "Find a sapling in the grass.",
        _done("collect_sapling"),
        living.COLLECT_SAPLING,
    ),
    _script("place_plant", "Plant a sapling.", _done("place_plant"), living.PLACE_PLANT, ("collect_sapling",)),
    _script(
        "eat_plant",
        "Guard a plant until it is ripe and eat it.",
        _done("eat_plant"),
        living.EAT_PLANT,
        ("make_wood_sword", "gather_stones", "place_plant"),
    ),
    _script("defeat_zombie", "Defeat a zombie.", _done("defeat_zombie"), living.DEFEAT_ZOMBIE),
    _script(
        "defeat_skeleton",
        "Find a skeleton in the tunnels and defeat it.",
        _done("defeat_skeleton"),
        living.DEFEAT_SKELETON,
        ("make_wood_pickaxe",),
    ),
    _script(
        "gather_stones",
        "Mine stones enough for a shelter.",
        'view.inventory["stone"] >= 8 or "place_stone" in view.achieved',
        gathering.GATHER_STONES,
        ("make_wood_pickaxe",),
        (),
    ),
    _script(
        "survive_night",
        "Be behind stone before it is dark and stay there.",
        "view.steps >= 300",
        living.SURVIVE_NIGHT,
        ("gather_stones",),
    ),
)
