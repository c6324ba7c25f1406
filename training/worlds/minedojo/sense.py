"""What one reply of the bridge child says about the surroundings: sights from the lidar, names, bearings.

Pure functions of plain data. Angles in degrees: yaw 0 looks along +z and grows to the right, pitch grows downwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

EYE = 1.62
PITCHES = tuple(range(-30, 30, 6))
YAWS = tuple(range(-60, 60, 10))
"""The paper's lidar: pitch -30..24 by 6, yaw -60..50 by 10 degrees, relative to the look."""
RENAMED = {"wood": "log", "wooden_planks": "planks", "grass_block": "grass", "still_water": "water"}
"""Display names the game reports, as item names."""


class Seen(NamedTuple):
    name: str
    is_animal: bool
    distance: float
    x: float
    y: float
    z: float
    """Where it is in the world (the aim point, not the feet)."""


def lidar(distance: float) -> list[tuple[float, float, float]]:
    """(pitch, yaw, range) of each ray in radians and blocks, as the client wants them."""
    return [(math.radians(p), math.radians(y), distance) for p in PITCHES for y in YAWS]


def block_name(shown: str) -> str:
    """Item-like name of a block's display name."""
    name = shown.replace(" ", "_")
    return RENAMED.get(name, name)


def direction(yaw: float, pitch: float) -> tuple[float, float, float]:
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


def sights(place: Sequence[float], rays: Sequence[Sequence[Any]]) -> list[Seen]:
    """The nearest of each name the lidar meets, nearest first.

    `rays` are [ray, entity, distance, block, distance, block x, y, z] as the child sends them. An entity's aim
    point is the mean over the rays that met it; a block's is its centre.
    """
    met: dict[str, list[tuple[float, int]]] = {}
    blocks: dict[str, tuple[float, float, float, float]] = {}
    for ray, entity, near, shown, far, x, y, z in rays:
        if entity:
            met.setdefault(entity, []).append((near, ray))
        if shown:
            name = block_name(shown)
            if name not in blocks or far < blocks[name][0]:
                blocks[name] = (far, x + 0.5, y + 0.5, z + 0.5)
    ex, ey, ez = place[0], place[1] + EYE, place[2]
    found = [Seen(name, False, far, x, y, z) for name, (far, x, y, z) in blocks.items()]
    for name, hits in met.items():
        nearest = min(hits)[0]
        same = [(near, ray_direction(place[3], place[4], ray)) for near, ray in hits if near < nearest + 1.5]
        n = len(same)
        found.append(Seen(
            name, True, nearest,
            ex + sum(d * v[0] for d, v in same) / n,
            ey + sum(d * v[1] for d, v in same) / n,
            ez + sum(d * v[2] for d, v in same) / n,
        ))  # fmt: skip
    return sorted(found, key=lambda seen: seen.distance)
