"""The text under a frame (compass, vitals, inventory), kept as the comment of its JPEG."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

QUARTERS = ("south", "south-west", "west", "north-west", "north", "north-east", "east", "south-east")
"""Of the look, from yaw 0 to the right."""
LONGEST = 60_000
"""Bytes that fit into a comment."""


def caption(reply: Mapping[str, Any]) -> str:
    """Lines for a person, from the child's answer."""
    x, y, z, yaw, pitch = reply["place"][:5]
    facing = QUARTERS[round(yaw / 45) % 8]
    counts: dict[str, int] = {}
    for _, name, count, _ in reply["inventory"]:
        counts[name] = counts.get(name, 0) + count
    bag = ", ".join(name if count == 1 else f"{count} {name}" for name, count in counts.items()) or "nothing"
    health, food = reply["life"][:2]
    return "\n".join((
        f"facing {facing} (yaw {yaw:.0f}, pitch {pitch:.0f}) at {x:.0f} {y:.0f} {z:.0f}",
        f"health {health:.0f}, food {food:.0f}, holding {reply['equipment'][0]}",
        f"inventory: {bag}",
    )).replace("_", " ")  # fmt: skip


def captioned(jpeg: bytes, text: str) -> bytes:
    """The same picture with the text as its comment."""
    comment = text.encode()[:LONGEST]
    return jpeg[:2] + b"\xff\xfe" + struct.pack("!H", len(comment) + 2) + comment + jpeg[2:]
