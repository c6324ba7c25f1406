"""What one reply of the bridge child says about the surroundings: sightings by the lidar, names, bearings.

Pure functions of plain data. Angles in degrees: yaw 0 looks along +z and grows to the right, pitch grows downwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import fsum
from typing import Any, NamedTuple

EYE = 1.62
"""Height of the player's eye in blocks."""
PITCHES = tuple(range(-30, 30, 6))
YAWS = tuple(range(-60, 60, 10))
"""The paper's lidar: pitch -30..24 by 6, yaw -60..50 by 10 degrees, relative to the look."""
RENAMED = {"wood": "log", "wooden_planks": "planks", "grass_block": "grass", "still_water": "water"}
"""Display name that the game reports -> item name, where they differ."""
RENAMED_ENTITIES = {
    "pigzombie": "zombie_pigman", "witherskeleton": "wither_skeleton", "magmacube": "magma_cube",
    "cavespider": "cave_spider",
}  # fmt: skip
"""Class of the game's entity, in lower case and without `Entity` -> its name in the client's tasks."""


class Sighting(NamedTuple):
    """A block or an entity that the lidar met. (x, y, z): its place in the world (the aim point, not the feet)."""

    name: str
    is_animal: bool
    distance: float
    """Blocks from the eye."""
    x: float
    y: float
    z: float


def lidar(distance: float) -> list[tuple[float, float, float]]:
    """(pitch, yaw, range) of each ray in radians and blocks, the form that the client's `lidar_rays` has."""
    return [(math.radians(p), math.radians(y), distance) for p in PITCHES for y in YAWS]


def block_name(display_name: str) -> str:
    """Item-like name of a block's display name."""
    name = display_name.replace(" ", "_")
    return RENAMED.get(name, name)


def direction(yaw: float, pitch: float) -> tuple[float, float, float]:
    """The unit vector of a look."""
    a, b = math.radians(yaw), math.radians(pitch)
    return -math.sin(a) * math.cos(b), -math.sin(b), math.cos(a) * math.cos(b)


def ray_direction(yaw: float, pitch: float, ray: int) -> tuple[float, float, float]:
    """The true direction of a ray. The game tilts rays about the world's x axis, then turns them (its
    Vec3d.rotatePitch and rotateYaw), so their nominal pitch holds only when looking along z."""
    x, y, z = direction(yaw, pitch)
    p, a = math.radians(PITCHES[ray // len(YAWS)]), math.radians(YAWS[ray % len(YAWS)])
    y, z = y * math.cos(p) + z * math.sin(p), z * math.cos(p) - y * math.sin(p)
    return x * math.cos(a) + z * math.sin(a), y, z * math.cos(a) - x * math.sin(a)


def bearing(place: Sequence[float], x: float, y: float, z: float) -> tuple[float, float, float]:
    """(turn, tilt, distance) from the eye of a player at `place` = x, y, z, yaw, pitch to a point."""
    dx, dy, dz = x - place[0], y - (place[1] + EYE), z - place[2]
    flat = math.hypot(dx, dz)
    turn = math.degrees(math.atan2(-dx, dz)) - place[3]
    tilt = math.degrees(math.atan2(-dy, flat)) - place[4]
    return (turn + 180) % 360 - 180, tilt, math.hypot(flat, dy)


def sights(place: Sequence[float], rays: Sequence[Sequence[Any]]) -> list[Sighting]:
    """The nearest of each name the lidar meets, nearest first.

    `rays` are [ray, entity, distance, block, distance, block x, y, z] as the child sends them. An entity's aim
    point is the mean over the rays that met it; a block's is its centre.
    """
    entity_hits: dict[str, list[tuple[float, int]]] = {}
    blocks: dict[str, tuple[float, float, float, float]] = {}
    for ray, entity, entity_distance, display_name, block_distance, x, y, z in rays:
        if entity:
            entity_hits.setdefault(RENAMED_ENTITIES.get(entity, entity), []).append((entity_distance, ray))
        if display_name:
            name = block_name(display_name)
            if name not in blocks or block_distance < blocks[name][0]:
                blocks[name] = (block_distance, x + 0.5, y + 0.5, z + 0.5)
    eye_x, eye_y, eye_z = place[0], place[1] + EYE, place[2]
    sightings = [Sighting(name, False, block_distance, x, y, z) for name, (block_distance, x, y, z) in blocks.items()]
    for name, hits in entity_hits.items():
        nearest = min(hits)[0]
        # rays that end within 1.5 blocks of the nearest one met the same entity; the others met one of its kind behind
        same_entity = [(d, ray_direction(place[3], place[4], ray)) for d, ray in hits if d < nearest + 1.5]
        n = len(same_entity)
        sightings.append(Sighting(
            name, True, nearest,
            eye_x + fsum(d * v[0] for d, v in same_entity) / n,
            eye_y + fsum(d * v[1] for d, v in same_entity) / n,
            eye_z + fsum(d * v[2] for d, v in same_entity) / n,
        ))  # fmt: skip
    return sorted(sightings, key=lambda sighting: sighting.distance)
