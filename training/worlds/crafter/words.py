"""Where each item and achievement is counted in `state`, and the numbers of the actions."""

from rlgpt.training.worlds.crafter.layout import DONE_TIMES, ITEM
from rlgpt.training.worlds.crafter.names import ACHIEVEMENTS, ACTIONS, HARMS, ITEMS

FOOD = ITEM + ITEMS.index("food")
DRINK = ITEM + ITEMS.index("drink")
ENERGY = ITEM + ITEMS.index("energy")
SAPLING = ITEM + ITEMS.index("sapling")
WOOD = ITEM + ITEMS.index("wood")
STONES = ITEM + ITEMS.index("stone")
COALS = ITEM + ITEMS.index("coal")
IRONS = ITEM + ITEMS.index("iron")
DIAMONDS = ITEM + ITEMS.index("diamond")
WOOD_PICKAXE = ITEM + ITEMS.index("wood_pickaxe")
STONE_PICKAXE = ITEM + ITEMS.index("stone_pickaxe")
IRON_PICKAXE = ITEM + ITEMS.index("iron_pickaxe")
WOOD_SWORD = ITEM + ITEMS.index("wood_sword")
STONE_SWORD = ITEM + ITEMS.index("stone_sword")
IRON_SWORD = ITEM + ITEMS.index("iron_sword")
LIFE = ITEM + ITEMS.index("health")

COLLECT_COAL = DONE_TIMES + ACHIEVEMENTS.index("collect_coal")
COLLECT_DIAMOND = DONE_TIMES + ACHIEVEMENTS.index("collect_diamond")
COLLECT_DRINK = DONE_TIMES + ACHIEVEMENTS.index("collect_drink")
COLLECT_IRON = DONE_TIMES + ACHIEVEMENTS.index("collect_iron")
COLLECT_SAPLING = DONE_TIMES + ACHIEVEMENTS.index("collect_sapling")
COLLECT_STONE = DONE_TIMES + ACHIEVEMENTS.index("collect_stone")
COLLECT_WOOD = DONE_TIMES + ACHIEVEMENTS.index("collect_wood")
DEFEAT_SKELETON = DONE_TIMES + ACHIEVEMENTS.index("defeat_skeleton")
DEFEAT_ZOMBIE = DONE_TIMES + ACHIEVEMENTS.index("defeat_zombie")
EAT_COW = DONE_TIMES + ACHIEVEMENTS.index("eat_cow")
EAT_PLANT = DONE_TIMES + ACHIEVEMENTS.index("eat_plant")
PLACE_FURNACE = DONE_TIMES + ACHIEVEMENTS.index("place_furnace")
PLACE_PLANT = DONE_TIMES + ACHIEVEMENTS.index("place_plant")
PLACE_STONE = DONE_TIMES + ACHIEVEMENTS.index("place_stone")
PLACE_TABLE = DONE_TIMES + ACHIEVEMENTS.index("place_table")
WAKE_UP = DONE_TIMES + ACHIEVEMENTS.index("wake_up")
# The six recipes in the order of the actions, of the items and of the achievements.
MADE_PICKAXE = (
    DONE_TIMES + ACHIEVEMENTS.index("make_wood_pickaxe"),
    DONE_TIMES + ACHIEVEMENTS.index("make_stone_pickaxe"),
    DONE_TIMES + ACHIEVEMENTS.index("make_iron_pickaxe"),
    DONE_TIMES + ACHIEVEMENTS.index("make_wood_sword"),
    DONE_TIMES + ACHIEVEMENTS.index("make_stone_sword"),
    DONE_TIMES + ACHIEVEMENTS.index("make_iron_sword"),
)
DO = ACTIONS.index("do")
SLEEP = ACTIONS.index("sleep")
SET_STONE = ACTIONS.index("place_stone")
SET_TABLE = ACTIONS.index("place_table")
SET_FURNACE = ACTIONS.index("place_furnace")
SET_PLANT = ACTIONS.index("place_plant")
MAKE = ACTIONS.index("make_wood_pickaxe")
BY_ZOMBIE = HARMS.index("zombie")
BY_ARROW = HARMS.index("arrow")
BY_LAVA = HARMS.index("lava")
BY_THIRST = HARMS.index("thirst")
BY_HUNGER = HARMS.index("hunger")
BY_FATIGUE = HARMS.index("fatigue")
