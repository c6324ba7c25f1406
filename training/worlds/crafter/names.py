"""The names of Crafter 1.8.3 in the order of its data file, and the layout of packed senses. Standard library only."""

ACTIONS = (
    "noop", "move_left", "move_right", "move_up", "move_down", "do", "sleep", "place_stone", "place_table",
    "place_furnace", "place_plant", "make_wood_pickaxe", "make_stone_pickaxe", "make_iron_pickaxe",
    "make_wood_sword", "make_stone_sword", "make_iron_sword",
)  # fmt: skip
ITEMS = (
    "health", "food", "drink", "energy", "sapling", "wood", "stone", "coal", "iron", "diamond",
    "wood_pickaxe", "stone_pickaxe", "iron_pickaxe", "wood_sword", "stone_sword", "iron_sword",
)  # fmt: skip
"""The first four are the vitals."""
MOST = 9
"""Of an item; the least is 0."""
VITALS = ITEMS[:4]
INVENTORY = ITEMS[4:]
ACHIEVEMENTS = (
    "collect_coal", "collect_diamond", "collect_drink", "collect_iron", "collect_sapling", "collect_stone",
    "collect_wood", "defeat_skeleton", "defeat_zombie", "eat_cow", "eat_plant", "make_iron_pickaxe",
    "make_iron_sword", "make_stone_pickaxe", "make_stone_sword", "make_wood_pickaxe", "make_wood_sword",
    "place_furnace", "place_plant", "place_stone", "place_table", "wake_up",
)  # fmt: skip
MATERIALS = (
    "unknown", "water", "grass", "stone", "path", "sand", "tree", "lava", "coal", "iron", "diamond", "table",
    "furnace",
)  # fmt: skip
"""By material code. 0 is outside the map in a window and never seen in the map memory."""
OBJECTS = (
    "nothing", "cow", "zombie", "skeleton", "arrow_left", "arrow_right", "arrow_up", "arrow_down", "sapling",
    "ripe_plant",
)  # fmt: skip
"""By object code, as seen in the window; the agent itself is not listed."""
REMEMBERED = (*MATERIALS, "plant")
"""By code in the map memory: plants stay where they are, so they are remembered like a material."""
CATEGORIES = MATERIALS + OBJECTS[1:]
"""What one window cell shows: the object on it, else its material."""
FACINGS = ("left", "right", "up", "down")
DIRECTIONS = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""(dx, dy) by facing; x grows to the right, y downwards."""

AREA = 64
"""Cells per side of the square map."""
WIDTH, HEIGHT = 9, 7
"""Of the window; the agent stands in its middle."""
REACH_X, REACH_Y = WIDTH // 2, HEIGHT // 2
MEMORY_WIDTH, MEMORY_HEIGHT = AREA + 2 * REACH_X, AREA + 2 * REACH_Y
"""The map memory has a margin, so that a window always lies inside; row-major, cell (x, y) of the map
is at column x + REACH_X of row y + REACH_Y."""

# The packed senses: one byte each unless said otherwise, little-endian.
AT_WHOLE = 0
AT_X, AT_Y, AT_FACING, AT_SLEEPING, AT_DAYLIGHT, AT_INTERRUPT, AT_WAITING = 1, 2, 3, 4, 5, 6, 7
AT_STEPS, AT_STEPS_LEFT = 8, 10
"""16 bits each."""
AT_ITEMS = 12
AT_ACHIEVED = 28
"""24 bits, bit i = ACHIEVEMENTS[i]."""
AT_NEAR = 31
"""Bit 0: table, bit 1: furnace in the 3x3 cells around the agent (the reach of crafting)."""
AT_MATERIALS = 32
AT_OBJECTS = AT_MATERIALS + WIDTH * HEIGHT
AT_BITS = AT_OBJECTS + WIDTH * HEIGHT
"""What the map memory has of the window now, as bit planes: PLANES numbers of WINDOW_BYTES bytes. Bit i of a code
is in plane i; the bit of window cell (column, row) is row * MEMORY_WIDTH + column."""
PLANES = 4
WINDOW_BYTES = ((HEIGHT - 1) * MEMORY_WIDTH + WIDTH + 7) // 8
SENSES = AT_BITS + PLANES * WINDOW_BYTES
"""Bytes of a view that is not whole."""
PLANE_BYTES = MEMORY_WIDTH * MEMORY_HEIGHT // 8
"""A whole view ends with the map memory, PLANES numbers of PLANE_BYTES bytes; the bit of memory cell
(column, row) is row * MEMORY_WIDTH + column. A window at (x, y) starts at bit y * MEMORY_WIDTH + x."""
WHOLE = SENSES + PLANES * PLANE_BYTES
"""Bytes of a whole view."""
HARMS = ("", "zombie", "arrow", "lava", "thirst", "hunger", "fatigue")
"""What takes health, by the code in `layout.HURT_BY`; the first means nothing yet."""
TARGETS = (*MATERIALS[1:], "cow", "zombie", "skeleton", "arrow", "sapling", "ripe_plant")
"""What `Env.distance` and the distance reward can be given."""
PICTURE = 64
"""Height and width of the picture, in pixels."""
