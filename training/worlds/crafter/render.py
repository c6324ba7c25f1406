"""The picture that stock Crafter draws (64 x 64 pixels, 9 x 9 grid), with a random stream of its own.

Tiles are blended once for each pair of ground and thing, and cached; light, night noise and sleep follow
`crafter.engine.LocalView` operation by operation, so that the bytes are equal for an equal stream.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import crafter
import numpy as np
from crafter import engine
from numpy.typing import NDArray
from PIL import Image, ImageEnhance

from rlgpt.training.worlds.crafter import layout, names
from rlgpt.training.worlds.crafter.simulation import Simulation

SIZE = names.PICTURE
SHAPE = (SIZE, SIZE, 3)
_UNIT = SIZE // 9
_BORDER = (SIZE - 9 * _UNIT) // 2
_WIDE, _HIGH = names.WIDTH * _UNIT, names.HEIGHT * _UNIT
_THINGS = (
    "cow", "zombie", "skeleton", "arrow-left", "arrow-right", "arrow-up", "arrow-down", "plant", "plant-ripe",
)  # fmt: skip
"""Textures by object code - 1."""
_PLAYER = tuple(f"player-{facing}" for facing in names.FACINGS)

Tile = NDArray[np.uint8]


@cache
def _textures() -> engine.Textures:
    return engine.Textures(crafter.constants.root / "assets")


def _blend(ground: Tile, texture: Tile) -> Tile:
    if texture.shape[-1] != 4:
        return texture
    alpha = texture[..., 3:].astype(np.float32) / 255
    colour = texture[..., :3].astype(np.float32) / 255
    under = ground.astype(np.float32) / 255
    return (255 * (alpha * colour + (1 - alpha) * under)).astype(np.uint8)


@cache
def _tile(material: int, texture: str) -> Tile:
    """(unit, unit, 3), x first: a ground with a thing on it, or bare ground for an empty name."""
    unit = (_UNIT, _UNIT)
    if material == layout.OUTSIDE:
        ground = np.full((_UNIT, _UNIT, 3), 127, np.uint8)
    else:
        ground = _textures().get(names.MATERIALS[material], unit)[..., :3]
    return _blend(ground, _textures().get(texture, unit)) if texture else ground


@cache
def _item(slot: int, item: str, amount: int) -> Tile:
    """The inventory cell of one item."""
    unit = np.array((_UNIT, _UNIT))
    cell = np.zeros((_UNIT, _UNIT, 3), np.uint8)
    origin = np.array((slot % 9, slot // 9)) * unit
    for texture, offset, scale in ((item, 0.1, 0.8), (str(amount), 0.4, 0.6)):
        image = _textures().get(texture, scale * unit)
        x, y = (origin + offset * unit).astype(np.int32) - origin
        width, height = image.shape[:2]
        part = cell[x : x + width, y : y + height]
        cell[x : x + width, y : y + height] = _blend(part, image[: part.shape[0], : part.shape[1]])
    return cell


@cache
def _vignette() -> NDArray[np.float64]:
    shape, deviation = (_WIDE, _HIGH), 0.5
    xs, ys = np.meshgrid(np.linspace(-1, 1, shape[0]), np.linspace(-1, 1, shape[1]))
    shade: NDArray[np.float64] = 1 - np.exp(-0.5 * (xs**2 + ys**2) / (deviation**2)).T
    return shade


def _colour(canvas: NDArray[Any], amount: float) -> NDArray[np.uint8]:
    return np.array(ImageEnhance.Color(Image.fromarray(canvas.astype(np.uint8))).enhance(amount))


class Painter:
    """Draws one simulation. Its noise has a random stream of its own, so that drawing never changes the game."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.random = np.random.RandomState(0)

    def reset(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)

    def paint(self) -> NDArray[np.uint8]:
        """uint8 (height, width, 3)."""
        canvas = np.zeros(SHAPE, np.uint8)
        left, top = _BORDER, _BORDER
        canvas[left : left + _WIDE, top : top + _HIGH] = self._local()
        self._items(canvas[left : left + 9 * _UNIT, top + _HIGH : top + 9 * _UNIT])
        return canvas.transpose((1, 0, 2))

    def _local(self) -> NDArray[np.float64]:
        simulation = self._simulation
        packed = simulation.senses.tolist()
        sleeping = simulation.state[layout.SLEEPING] != 0
        ground = np.empty((_WIDE, _HIGH, 3), np.uint8)
        for cell in range(names.WIDTH * names.HEIGHT):
            column, row = cell % names.WIDTH, cell // names.WIDTH
            code = packed[names.AT_OBJECTS + cell]
            texture = _THINGS[code - 1] if code else ""
            if column == names.REACH_X and row == names.REACH_Y:
                texture = "player-sleep" if sleeping else _PLAYER[packed[names.AT_FACING]]
            ground[column * _UNIT : (column + 1) * _UNIT, row * _UNIT : (row + 1) * _UNIT] = _tile(
                packed[names.AT_MATERIALS + cell], texture
            )
        canvas = self._light(ground, simulation.lights[simulation.state[layout.STEP]])
        return 0.5 * _colour(canvas, 0.0) + 0.5 * np.array((0, 0, 16)) if sleeping else canvas

    def _light(self, canvas: NDArray[np.uint8], daylight: float) -> NDArray[np.float64]:
        noisy: NDArray[Any] = canvas
        if daylight < 0.5:
            noise = self.random.uniform(32, 127, canvas.shape[:2])[..., None]
            mask = 2 * (0.5 - daylight) * _vignette()[..., None]
            noisy = (1 - mask) * canvas + mask * noise
        night = (1 - 0.5) * _colour(noisy, 0.4) + 0.5 * np.array((0, 16, 64))
        lit: NDArray[np.float64] = daylight * canvas + (1 - daylight) * night
        return lit

    def _items(self, canvas: NDArray[np.uint8]) -> None:
        counts = self._simulation.state[layout.ITEM : layout.ITEM + 16].tolist()
        for slot, (item, amount) in enumerate(zip(names.ITEMS, counts, strict=True)):
            if amount >= 1:
                x, y = slot % 9 * _UNIT, slot // 9 * _UNIT
                canvas[x : x + _UNIT, y : y + _UNIT] = _item(slot, item, amount)
