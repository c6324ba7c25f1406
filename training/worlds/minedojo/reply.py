"""Checks an observation of the bridge child before anything computes with it.

The game's Java side writes it as JSON, which has NaN and infinity, and the client passes on what it finds. A game
that sends such a thing is treated as a lost one.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlgpt.training.worlds.minedojo.bridge import MineDojoError
from rlgpt.training.worlds.minedojo.items import CRAFT_ITEMS
from rlgpt.training.worlds.minedojo.sense import PITCHES, YAWS

FARTHEST = 1e9
"""Minecraft's world ends at 3e7 blocks."""
SLOTS = 36
Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-FARTHEST, le=FARTHEST)]
Whole = Annotated[int, Field(strict=True, ge=-FARTHEST, le=FARTHEST)]
Count = Annotated[int, Field(strict=True, ge=0, le=FARTHEST)]
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


def check(reply: Any, picture: int) -> dict[str, Any]:
    """The reply itself. Raises `MineDojoError` of the kind `game` with what is wrong in it.

    `picture`: bytes of its frame, 0 where none was asked for.
    """
    try:
        Reply.model_validate(reply)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "reply"
        value = repr(first["input"])[:60] if first["type"] != "missing" else "nothing"
        raise _wrong(where, value, first["msg"]) from error
    if len(reply["rgb"]) != picture:
        raise _wrong("rgb", f"{len(reply['rgb'])} bytes", f"{picture} bytes are one frame")
    equip, place, _, craft = (8 * len(mask) for mask in reply["masks"])
    if min(equip, place) < SLOTS or craft < len(CRAFT_ITEMS):
        raise _wrong("masks", f"{equip}, {place} and {craft} bits", "there are fewer than slots and recipes")
    sound: dict[str, Any] = reply
    return sound


def _wrong(where: str, found: str, why: str) -> MineDojoError:
    return MineDojoError("game", f"The game sent an observation that cannot be used: {where} is {found} ({why}).")
