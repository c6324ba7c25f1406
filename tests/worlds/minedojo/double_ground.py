"""The ground of the game's double: flat, with trees and hedges, and what the player has put there."""

from __future__ import annotations

import math
import random

GROUND = 4
"""The player's feet stand at this height; the block below is grass."""
TREE_CELL = 8
TREE_CHANCE, FOREST_CHANCE = 0.12, 0.2
FORESTS = (4, 18, 27, 28)
"""Biome ids."""
FIELD = 10
Block = tuple[int, int, int]
Vector = tuple[float, float, float]


def look(yaw: float, pitch: float) -> Vector:
    """Minecraft's unit look vector: yaw 0 is +z (south), 90 is -x (west); positive pitch looks down."""
    a, b = math.radians(yaw), math.radians(pitch)
    return -math.sin(a) * math.cos(b), -math.sin(b), math.cos(a) * math.cos(b)


def turned(vector: Vector, pitch: float, yaw: float) -> Vector:
    """Vec3d.rotatePitch then rotateYaw, as the game's lidar does: pitch is about the world's x axis, so it
    tilts only the part of the look that points along z; a positive yaw turns left."""
    x, y, z = vector
    y, z = y * math.cos(pitch) + z * math.sin(pitch), z * math.cos(pitch) - y * math.sin(pitch)
    return x * math.cos(yaw) + z * math.sin(yaw), y, z * math.cos(yaw) - x * math.sin(yaw)


def _axis(origin: float, cell: int, ray: float) -> tuple[int, float, float]:
    """Step, distance per cell and distance to the first border along one axis."""
    if ray > 0:
        return 1, 1 / ray, (cell + 1 - origin) / ray
    if ray < 0:
        return -1, -1 / ray, (cell - origin) / ray
    return 0, math.inf, math.inf


class Ground:
    """Blocks by cell. Equal for equal seed and biome until something is `put`."""

    def __init__(self, seed: int, biome: int) -> None:
        self.seed, self.biome = seed, biome
        self.placed: dict[Block, str] = {}
        self._blocks: dict[Block, str] = {}
        self._trees: dict[tuple[int, int], tuple[int, int, int] | None] = {}
        self._tall: dict[tuple[int, int], bool] = {}

    def tree(self, cx: int, cz: int) -> tuple[int, int, int] | None:
        """(x, z, height) of the tree in a cell of the tree lattice; none near where the first life began."""
        if (cx, cz) not in self._trees:
            chance = FOREST_CHANCE if self.biome in FORESTS else TREE_CHANCE
            roll = random.Random(self.seed * 1_000_003 + cx * 7919 + cz)
            grows = roll.random() < chance and (cx, cz) != (0, 0)
            x, z = (c * TREE_CELL + roll.randrange(TREE_CELL) for c in (cx, cz))
            self._trees[cx, cz] = (x, z, 4 + roll.randrange(2)) if grows else None
        return self._trees[cx, cz]

    def block(self, cell: Block) -> str:
        """Item name of the block, '' for air."""
        known = self._blocks.get(cell)
        if known is None:
            known = self._blocks[cell] = self._natural(*cell)
        return known

    def _natural(self, x: int, y: int, z: int) -> str:
        if y < GROUND:
            return "grass" if y == GROUND - 1 else "dirt" if y > GROUND - 4 else "stone"
        if y > GROUND + 6:
            return ""
        if y == GROUND and self.hedge(x, z):
            return "leaves"
        for cx in range((x - 1) // TREE_CELL, (x + 1) // TREE_CELL + 1):
            for cz in range((z - 1) // TREE_CELL, (z + 1) // TREE_CELL + 1):
                tree = self.tree(cx, cz)
                if tree is None:
                    continue
                tx, tz, tall = tree
                if (tx, tz) == (x, z) and y < GROUND + tall:
                    return "log"
                if abs(tx - x) <= 1 and abs(tz - z) <= 1 and GROUND + tall - 1 <= y <= GROUND + tall:
                    return "leaves"
        return ""

    def hedge(self, x: int, z: int) -> bool:
        """Hedges around square fields: too high to walk over, low enough to jump and to look across. Whoever only
        walks is stuck at one; when to jump has to be learnt."""
        return x % FIELD == 0 or z % FIELD == 0

    def put(self, cell: Block, kind: str) -> None:
        self._blocks[cell] = kind
        self.placed[cell] = kind
        self._tall[cell[0] // TREE_CELL, cell[2] // TREE_CELL] = True

    def solid_at(self, x: float, z: float, half: float, y: float = GROUND, tall: float = 1.5) -> bool:
        for bx in range(math.floor(x - half), math.floor(x + half) + 1):
            for bz in range(math.floor(z - half), math.floor(z + half) + 1):
                for by in range(math.floor(y), math.floor(y + tall) + 1):
                    if self.block((bx, by, bz)):
                        return True
        return False

    def trace(self, origin: Vector, ray: Vector, far: float) -> tuple[Block, float, Block] | None:
        """First block on a unit ray: (cell, distance, the air cell before it).

        Above the hedges only trees and what was built stand in the way: there a ray passes from one cell of the
        tree lattice to the next, and only those that hold something are searched block by block.
        """
        px, py, pz = origin
        rx, ry, rz = ray
        if py <= GROUND + 1:
            return self.search(origin, ray, 0.0, far)
        over = far
        if ry > 0:
            over = far = min(far, (GROUND + 7 - py) / ry)
        elif ry < 0:
            over = min(far, (GROUND + 1 - py) / ry)
        cx, cz = math.floor(px / TREE_CELL), math.floor(pz / TREE_CELL)
        sx, dx, wx = _axis(px / TREE_CELL, cx, rx / TREE_CELL)
        sz, dz, wz = _axis(pz / TREE_CELL, cz, rz / TREE_CELL)
        at = 0.0
        while at < over:
            until = min(wx, wz, over)
            if self.tall(cx, cz):
                found = self.search(origin, ray, at, until)
                if found is not None:
                    return found
            at = until
            if wx <= wz:
                cx, wx = cx + sx, wx + dx
            else:
                cz, wz = cz + sz, wz + dz
        return self.search(origin, ray, over, far) if over < far else None

    def tall(self, cx: int, cz: int) -> bool:
        """Whether anything may stand higher than a hedge in a cell of the tree lattice."""
        known = self._tall.get((cx, cz))
        if known is None:
            near = (self.tree(x, z) for x in range(cx - 1, cx + 2) for z in range(cz - 1, cz + 2))
            x, z = cx * TREE_CELL, cz * TREE_CELL
            known = self._tall[cx, cz] = any(
                tree is not None and -1 <= tree[0] - x <= TREE_CELL and -1 <= tree[1] - z <= TREE_CELL for tree in near
            )
        return known

    def search(self, origin: Vector, ray: Vector, start: float, far: float) -> tuple[Block, float, Block] | None:
        """First block on a unit ray between two distances, block by block."""
        start, far = max(0.0, start - 0.001), far + 0.001  # a border lies in both parts
        px, py, pz = (o + start * r for o, r in zip(origin, ray, strict=True))
        far -= start
        x, y, z = math.floor(px), math.floor(py), math.floor(pz)
        sx, dx, wx = _axis(px, x, ray[0])
        sy, dy, wy = _axis(py, y, ray[1])
        sz, dz, wz = _axis(pz, z, ray[2])
        known, natural = self._blocks, self.block
        before = (x, y, z)
        top = GROUND + 7
        while True:
            if wx <= wy and wx <= wz:
                walked, x, wx = wx, x + sx, wx + dx
            elif wy <= wz:
                walked, y, wy = wy, y + sy, wy + dy
                if y > top and sy > 0:
                    return None
            else:
                walked, z, wz = wz, z + sz, wz + dz
            if walked > far:
                return None
            here = (x, y, z)
            kind = known.get(here)
            if kind or (kind is None and natural(here)):
                return here, walked + start, before
            before = here
