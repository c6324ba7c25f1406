"""The arrays of one running world, and the offsets of its values in them.

`state` int64: the random stream and all scalars, at the offsets below.
`material` uint8 [64, 64] and `occupant` int16 [64, 64], indexed [x, y] like Crafter's own maps;
an occupant is the row of an object plus 1; 0 means that the cell is empty.
`objects` int32 [CAPACITY, FIELDS]: live and dead objects in the order of their creation, the player first.
`memory` uint8 [70, 72] and `senses` uint8: see `names`.
"""

from typing import Any, Final

from numpy.typing import NDArray

from rlgpt.training.worlds.crafter import names

Array = NDArray[Any]
"""An array of one of the element types above. numba infers which; mypy does not check it."""

# state
RANDOM: Final = 0
RANDOM_SIZE: Final = 624
RANDOM_AT: Final = 624
STEP: Final = 625
HORIZON: Final = 626
GOAL: Final = 627
"""Index of the achievement whose unlocking ends the episode; -1: none."""
FACING: Final = 628
SLEEPING: Final = 629
LAST_HEALTH: Final = 630
"""Health after the player's last update: a sleeper who has lost some since then wakes up."""
REWARDED_HEALTH: Final = 631
"""Health after the previous step; the reward is a tenth of the change since."""
HUNGER2: Final = 632
THIRST2: Final = 633
RECOVER2: Final = 634
"""Crafter counts these three in steps of 0.5, so the integers here are twice its values."""
FATIGUE: Final = 635
ROWS: Final = 636
"""Used rows of `objects`."""
DEAD: Final = 637
"""Dead rows among them."""
ARRIVALS: Final = 638
"""Number of times that an object entered a chunk."""
CHUNKS: Final = 639
"""Chunks that ever held an object."""
ENEMY_NEAR: Final = 640
INTERRUPT: Final = 641
NOVELTY: Final = 642
LEFT: Final = 643
RIGHT: Final = 644
TOP: Final = 645
BOTTOM: Final = 646
"""Bounding box of the remembered cells, in memory columns and rows, inclusive."""
HURT_BY: Final = 647
"""What last took health: an index of `names.HARMS`."""
ITEM: Final = 650
"""16 counts, in the order of `names.ITEMS`."""
MAX_COUNT: Final = 670
"""16 maxima of these counts in this episode."""
ACHIEVED_TIMES: Final = 690
"""22 achievement counts."""
CHUNK_ORDER: Final = 720
"""36 chunk numbers, in the order in which chunks first held an object."""
CHUNK_USED: Final = 760
"""36 flags: the chunk has held an object."""
POPULATION: Final = 800
"""36 x 3 counts of zombies, skeletons and cows, valid while chunks are balanced."""
STATE_SIZE: Final = 910

# objects
KIND: Final = 0
X: Final = 1
Y: Final = 2
HEALTH: Final = 3
TIMER: Final = 4
"""Zombie: cooldown, skeleton: reload, plant: steps it has grown."""
HEADING: Final = 5
"""Direction of an arrow, an index of `names.DIRECTIONS`."""
ARRIVAL: Final = 6
"""`ARRIVALS` when it entered the chunk that it is in: orders the objects of a chunk."""
FIELDS: Final = 7
CAPACITY: Final = 12288
"""There are at most 4,096 live objects, one per cell, and a step adds fewer than 4,096."""

NOBODY: Final = 0
PLAYER: Final = 1
COW: Final = 2
ZOMBIE: Final = 3
SKELETON: Final = 4
ARROW: Final = 5
PLANT: Final = 6

# materials
OUTSIDE: Final = 0
WATER: Final = 1
GRASS: Final = 2
STONE: Final = 3
PATH: Final = 4
SAND: Final = 5
TREE: Final = 6
LAVA: Final = 7
COAL: Final = 8
IRON: Final = 9
DIAMOND: Final = 10
TABLE: Final = 11
FURNACE: Final = 12

AREA: Final = names.AREA
CHUNK: Final = 12
CHUNK_ROWS: Final = 6
"""Chunks per side; the last of each row and column is smaller."""
ACTIVE: Final = 18
"""Objects at this L1 distance from the player or further are not updated."""
RIPE: Final = 300
"""A plant is ripe after more than this many steps."""
