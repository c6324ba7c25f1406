"""Checks an observation of the bridge child before anything computes with it.

The game's Java side writes it as JSON, where a number may be NaN or infinite, and the client passes it on unchecked. A
game that sends such an observation counts as lost.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlgpt.training.worlds.minedojo.bridge import MineDojoError
from rlgpt.training.worlds.minedojo.items import CRAFT_ITEMS
from rlgpt.training.worlds.minedojo.sense import PITCHES, YAWS

LARGEST = 1e9
"""Minecraft's world ends at 3e7 blocks."""
SLOTS = 36
Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
Whole = Annotated[int, Field(strict=True, ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Text = Annotated[str, Field(strict=True, max_length=1000)]
Flag = Annotated[bool, Field(strict=True)]
Bits = Annotated[bytes, Field(strict=True)]
Ray = Annotated[int, Field(strict=True, ge=0, lt=len(PITCHES) * len(YAWS))]


class Reply(BaseModel):
    """The fields that `MineDojoEnv` reads, in the child's own order (`child.Game.reply`)."""

    model_config = ConfigDict(extra="ignore")

    reward: Number
    ended: Flag
    success: Flag
    alive: Flag
    refused: Text
    inventory: list[tuple[Count, Text, Count, Whole]]
    equipment: tuple[Text, Text, Text, Text, Text, Text]
    life: tuple[Number, Number, Number, Number, Number, Number, Whole]
    place: tuple[Number, Number, Number, Number, Number, Whole, Number, Whole, Whole]
    near: tuple[Count, Count]
    voxels: Annotated[list[Text], Field(min_length=27, max_length=27)]
    rays: list[tuple[Ray, Text, Number, Text, Number, Number, Number, Number]]
    masks: tuple[Bits, Bits, Bits, Bits]
    rgb: Bits


def check(reply: Any, frame_bytes: int) -> dict[str, Any]:
    """The reply itself. Raises `MineDojoError` of the kind `game` with what is wrong in it.

    `frame_bytes` is the size of its frame, 0 where no pixels were requested.
    """
    try:
        Reply.model_validate(reply)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "reply"
        value = repr(first["input"])[:60] if first["type"] != "missing" else "nothing"
        raise _wrong(where, value, first["msg"]) from error
    if len(reply["rgb"]) != frame_bytes:
        raise _wrong("rgb", f"{len(reply['rgb'])} bytes", f"{frame_bytes} bytes are one frame")
    equip, place, _, craft = (8 * len(mask) for mask in reply["masks"])
    if min(equip, place) < SLOTS or craft < len(CRAFT_ITEMS):
        raise _wrong("masks", f"{equip}, {place} and {craft} bits", "there are fewer than slots and recipes")
    checked: dict[str, Any] = reply
    return checked


def _wrong(where: str, value: str, why: str) -> MineDojoError:
    return MineDojoError("game", f"The game sent an observation that cannot be used: {where} is {value} ({why}).")
