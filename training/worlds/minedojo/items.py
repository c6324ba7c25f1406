"""The 244 items of MineDojo's craft argument, in the client's own order (tested against the client).

Stdlib only: the action host imports this. `HAND_ITEMS` need nothing near, `TABLE_ITEMS` a crafting table,
`SMELT_ITEMS` a furnace and fuel. The item's index in `CRAFT_ITEMS` is entry 6 of the native action.
"""

from __future__ import annotations

HAND_ITEMS: tuple[str, ...] = (
    "blaze_powder", "book", "brick_block", "carpet", "carrot_on_a_stick", "chest_minecart", "clay",
    "crafting_table", "dye", "end_bricks", "end_rod", "ender_eye", "flint_and_steel", "furnace_minecart",
    "glowstone", "gold_nugget", "heavy_weighted_pressure_plate", "hopper_minecart", "iron_nugget", "iron_trapdoor",
    "leather", "lever", "light_weighted_pressure_plate", "lit_pumpkin", "magma", "magma_cream", "melon_seeds",
    "mossy_cobblestone", "nether_brick", "planks", "pumpkin_seeds", "purpur_block", "purpur_pillar", "quartz_block",
    "red_nether_brick", "red_sandstone", "redstone_torch", "sandstone", "shears", "slime_ball", "snow", "stick",
    "sticky_piston", "stone_button", "stone_pressure_plate", "stonebrick", "sugar", "tnt_minecart", "torch",
    "trapped_chest", "wheat", "wooden_button", "wooden_pressure_plate", "wool",
)  # fmt: skip
TABLE_ITEMS: tuple[str, ...] = (
    "acacia_boat", "acacia_door", "acacia_fence", "acacia_fence_gate", "acacia_stairs", "activator_rail", "anvil",
    "armor_stand", "arrow", "banner", "beacon", "bed", "beetroot_soup", "birch_boat", "birch_door", "birch_fence",
    "birch_fence_gate", "birch_stairs", "boat", "bone_block", "bookshelf", "bow", "bowl", "bread", "brewing_stand",
    "brick_stairs", "bucket", "cake", "cauldron", "chest", "clock", "coal_block", "cobblestone_wall", "comparator",
    "compass", "cookie", "dark_oak_boat", "dark_oak_door", "dark_oak_fence", "dark_oak_fence_gate",
    "dark_oak_stairs", "daylight_detector", "detector_rail", "diamond_axe", "diamond_block", "diamond_boots",
    "diamond_chestplate", "diamond_helmet", "diamond_hoe", "diamond_leggings", "diamond_pickaxe", "diamond_shovel",
    "diamond_sword", "dispenser", "dropper", "emerald_block", "enchanting_table", "end_crystal", "ender_chest",
    "fence", "fence_gate", "fermented_spider_eye", "fire_charge", "fishing_rod", "flower_pot", "furnace",
    "glass_bottle", "glass_pane", "gold_block", "golden_apple", "golden_axe", "golden_boots", "golden_carrot",
    "golden_chestplate", "golden_helmet", "golden_hoe", "golden_leggings", "golden_pickaxe", "golden_rail",
    "golden_shovel", "golden_sword", "hay_block", "hopper", "iron_axe", "iron_bars", "iron_block", "iron_boots",
    "iron_chestplate", "iron_door", "iron_helmet", "iron_hoe", "iron_leggings", "iron_pickaxe", "iron_shovel",
    "iron_sword", "item_frame", "jukebox", "jungle_boat", "jungle_door", "jungle_fence", "jungle_fence_gate",
    "jungle_stairs", "ladder", "lapis_block", "lead", "leather_boots", "leather_chestplate", "leather_helmet",
    "leather_leggings", "map", "melon_block", "minecart", "mushroom_stew", "nether_brick_fence",
    "nether_brick_stairs", "nether_wart_block", "noteblock", "oak_stairs", "observer", "painting", "paper",
    "piston", "prismarine", "pumpkin_pie", "purple_shulker_box", "purpur_slab", "purpur_stairs", "quartz_stairs",
    "rabbit_stew", "rail", "red_sandstone_stairs", "redstone_block", "redstone_lamp", "repeater",
    "sandstone_stairs", "sea_lantern", "shield", "sign", "slime", "snow_layer", "speckled_melon", "spectral_arrow",
    "spruce_boat", "spruce_door", "spruce_fence", "spruce_fence_gate", "spruce_stairs", "stained_glass",
    "stained_glass_pane", "stained_hardened_clay", "stone_axe", "stone_brick_stairs", "stone_hoe", "stone_pickaxe",
    "stone_shovel", "stone_slab", "stone_slab2", "stone_stairs", "stone_sword", "tnt", "trapdoor", "tripwire_hook",
    "wooden_axe", "wooden_door", "wooden_hoe", "wooden_pickaxe", "wooden_shovel", "wooden_slab", "wooden_sword",
    "writable_book",
)  # fmt: skip
SMELT_ITEMS: tuple[str, ...] = (
    "baked_potato", "brick", "chorus_fruit_popped", "coal", "cooked_beef", "cooked_chicken", "cooked_fish",
    "cooked_mutton", "cooked_porkchop", "cooked_rabbit", "diamond", "emerald", "glass", "gold_ingot",
    "hardened_clay", "iron_ingot", "netherbrick", "quartz", "redstone", "stone",
)  # fmt: skip
CRAFT_ITEMS: tuple[str, ...] = HAND_ITEMS + TABLE_ITEMS + SMELT_ITEMS
CRAFT_INDEX: dict[str, int] = {name: index for index, name in enumerate(CRAFT_ITEMS)}
