"""Where each item and achievement is counted in `state`, and the numbers of the actions."""

from rlgpt.training.worlds.crafter.layout import ACHIEVED_TIMES, ITEM
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

COLLECT_COAL = ACHIEVED_TIMES + ACHIEVEMENTS.index("collect_coal")
COLLECT_DIAMOND = ACHIEVED_TIMES + ACHIEVEMENTS.index("collect_diamond")
COLLECT_DRINK = ACHIEVED_TIMES + ACHIEVEMENTS.index("collect_drink")
COLLECT_IRON = ACHIEVED_TIMES + ACHIEVEMENTS.index("collect_iron")
COLLECT_SAPLING = ACHIEVED_TIMES + ACHIEVEMENTS.index("collect_sapling")
COLLECT_STONE = ACHIEVED_TIMES + ACHIEVEMENTS.index("collect_stone")
COLLECT_WOOD = ACHIEVED_TIMES + ACHIEVEMENTS.index("collect_wood")
DEFEAT_SKELETON = ACHIEVED_TIMES + ACHIEVEMENTS.index("defeat_skeleton")
DEFEAT_ZOMBIE = ACHIEVED_TIMES + ACHIEVEMENTS.index("defeat_zombie")
EAT_COW = ACHIEVED_TIMES + ACHIEVEMENTS.index("eat_cow")
EAT_PLANT = ACHIEVED_TIMES + ACHIEVEMENTS.index("eat_plant")
PLACE_FURNACE = ACHIEVED_TIMES + ACHIEVEMENTS.index("place_furnace")
PLACE_PLANT = ACHIEVED_TIMES + ACHIEVEMENTS.index("place_plant")
PLACE_STONE = ACHIEVED_TIMES + ACHIEVEMENTS.index("place_stone")
PLACE_TABLE = ACHIEVED_TIMES + ACHIEVEMENTS.index("place_table")
WAKE_UP = ACHIEVED_TIMES + ACHIEVEMENTS.index("wake_up")
# Achievements of the six recipes, in the order of their actions and of their items.
MAKE_ACHIEVEMENTS = (
    ACHIEVED_TIMES + ACHIEVEMENTS.index("make_wood_pickaxe"),
    ACHIEVED_TIMES + ACHIEVEMENTS.index("make_stone_pickaxe"),
    ACHIEVED_TIMES + ACHIEVEMENTS.index("make_iron_pickaxe"),
    ACHIEVED_TIMES + ACHIEVEMENTS.index("make_wood_sword"),
    ACHIEVED_TIMES + ACHIEVEMENTS.index("make_stone_sword"),
    ACHIEVED_TIMES + ACHIEVEMENTS.index("make_iron_sword"),
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
