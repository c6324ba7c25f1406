"""The picture that stock Crafter draws (64 x 64 pixels, 9 x 9 grid), but for where the noise of its nights comes from.

Tiles are blended once for each pair of ground and thing, and kept; painting.py does the rest for every pixel.
"""

from __future__ import annotations

from functools import cache

import crafter
import numpy as np
from crafter import engine
from numpy.typing import NDArray
from PIL import Image

from rlgpt.training.worlds.crafter import layout, names
from rlgpt.training.worlds.crafter.painting import UNIT, paint
from rlgpt.training.worlds.crafter.simulation import Simulation

SIZE = names.PICTURE
SHAPE = (SIZE, SIZE, 3)
_WINDOW = (names.WIDTH * UNIT, names.HEIGHT * UNIT)
"""Width and height of the window, in pixels."""
_TEXTURES = (
    "", "cow", "zombie", "skeleton", "arrow-left", "arrow-right", "arrow-up", "arrow-down", "plant", "plant-ripe",
    *(f"player-{facing}" for facing in names.FACINGS), "player-sleep",
)  # fmt: skip
"""By what painting.py calls the texture of a tile."""

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


def _tile(material: int, texture: str) -> Tile:
    """(UNIT, UNIT, 3), x first: a ground with a thing on it, or bare ground for an empty name."""
    unit = (UNIT, UNIT)
    if material == layout.OUTSIDE:
        ground = np.full((UNIT, UNIT, 3), 127, np.uint8)
    else:
        ground = _textures().get(names.MATERIALS[material], unit)[..., :3]
    return _blend(ground, _textures().get(texture, unit)) if texture else ground


@cache
def _tiles() -> Tile:
    """(materials, textures, UNIT, UNIT, 3)."""
    return np.array([[_tile(code, texture) for texture in _TEXTURES] for code in range(len(names.MATERIALS))])


def _cell(slot: int, item: str, amount: int) -> Tile:
    """The inventory cell of one item; black without any."""
    unit = np.array((UNIT, UNIT))
    cell = np.zeros((UNIT, UNIT, 3), np.uint8)
    if not amount:
        return cell
    origin = np.array((slot % 9, slot // 9)) * unit
    for texture, offset, scale in ((item, 0.1, 0.8), (str(amount), 0.4, 0.6)):
        image = _textures().get(texture, scale * unit)
        x, y = (origin + offset * unit).astype(np.int32) - origin
        width, height = image.shape[:2]
        part = cell[x : x + width, y : y + height]
        cell[x : x + width, y : y + height] = _blend(part, image[: part.shape[0], : part.shape[1]])
    return cell


@cache
def _cells() -> Tile:
    """(items, amounts, UNIT, UNIT, 3)."""
    amounts = range(names.MOST + 1)
    return np.array([[_cell(slot, item, amount) for amount in amounts] for slot, item in enumerate(names.ITEMS)])


@cache
def _shade() -> NDArray[np.float64]:
    """How much of the noise of a night there is, by x and y."""
    xs, ys = np.meshgrid(np.linspace(-1, 1, _WINDOW[0]), np.linspace(-1, 1, _WINDOW[1]))
    return np.ascontiguousarray(1 - np.exp(-0.5 * (xs**2 + ys**2) / (0.5**2)).T)


@cache
def _faded() -> NDArray[np.uint8]:
    """[grey, value]: what Pillow's `ImageEnhance.Color` with the factor 0.4 makes of a value among that grey."""
    value = np.tile(np.arange(256, dtype=np.uint8), (256, 1))
    return np.array(Image.blend(Image.fromarray(np.ascontiguousarray(value.T)), Image.fromarray(value), 0.4))


class Painter:
    """Draws one simulation. Stock takes the noise of a night from the world's random stream, and so changes the game by
    drawing it. Here it is a function of the world's state: drawing changes nothing, and a world that was saved and
    restored is drawn alike."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._noise = np.zeros(_WINDOW)
        self._random = np.random.RandomState(0)

    def paint(self, random: np.random.RandomState | None = None) -> NDArray[np.uint8]:
        """uint8 (height, width, 3). `random` draws the noise, where it is given."""
        simulation = self._simulation
        state = simulation.state
        light = float(simulation.lights[state[layout.STEP]])
        if light < 0.5:
            if random is None:
                random = self._random
                word, used, step = (int(state[at]) for at in (layout.RANDOM, layout.RANDOM_AT, layout.STEP))
                random.seed((word ^ used ^ step << 10) & 0xFFFFFFFF)  # `used` has ten bits
            self._noise = random.uniform(32, 127, _WINDOW)
        canvas = np.zeros(SHAPE, np.uint8)
        counts = state[layout.ITEM : layout.ITEM + len(names.ITEMS)]
        paint(
            simulation.senses, counts, bool(state[layout.SLEEPING]), light, self._noise, _shade(), _tiles(), _cells(),
            _faded(), canvas,
        )  # fmt: skip
        return canvas
