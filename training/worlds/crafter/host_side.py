"""The view of coded actions, its decoder, and how a yield becomes a command. Standard library only.

A view is a window on immutable bytes: decoding sets the window's bits in the map memory and nothing else;
attributes are read when they are asked for.
"""

from __future__ import annotations

from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.library import COSTS as COSTS
from rlgpt.training.worlds.crafter.library import LIBRARY as LIBRARY
from rlgpt.training.worlds.crafter.view import View

COMMAND_SIZE = 1
ATTRIBUTES = tuple(name for name in vars(View) if not name.startswith("_"))
"""What code may write behind a dot, besides the methods of plain values."""

_COMMANDS = {name: (index,) for index, name in enumerate(names.ACTIONS)}
_WINDOW = sum((1 << names.WIDTH) - 1 << row * names.MEMORY_WIDTH for row in range(names.HEIGHT))
_PATCHES = tuple(
    slice(names.AT_BITS + plane * names.WINDOW_BYTES, names.AT_BITS + (plane + 1) * names.WINDOW_BYTES)
    for plane in range(names.PLANES)
)
_PLANES = tuple(
    slice(names.SENSES + plane * names.PLANE_BYTES, names.SENSES + (plane + 1) * names.PLANE_BYTES)
    for plane in range(names.PLANES)
)


class Decoder:
    """Keeps the map memory of one env: whole at the start of an option, then what each window shows."""

    __slots__ = ("_planes",)

    def __init__(self) -> None:
        self._planes: tuple[int, ...] = (0,) * names.PLANES

    def view(self, packed: bytes) -> View:
        """Raises ValueError (a sentence) for bytes that are no packed view."""
        if len(packed) != (names.WHOLE if packed[:1] == b"\1" else names.SENSES):
            raise ValueError("The packed view has the wrong size.")
        number = int.from_bytes
        if packed[0]:
            self._planes = tuple(number(packed[part], "little") for part in _PLANES)
        else:
            at = packed[names.AT_Y] * names.MEMORY_WIDTH + packed[names.AT_X]
            self._planes = tuple(
                plane ^ ((plane >> at & _WINDOW ^ number(packed[part], "little")) << at)
                for plane, part in zip(self._planes, _PATCHES, strict=True)
            )
        return View(packed, self._planes)


def decoder() -> Decoder:
    return Decoder()


def encode(yielded: object) -> tuple[int, ...]:
    """The command of a yield: the name of a primitive, exactly a `str`. Raises ValueError (a sentence)."""
    if type(yielded) is str:
        command = _COMMANDS.get(yielded)
        if command is not None:
            return command
        raise ValueError(f"{yielded[:40]!r} is no primitive; yield one of {', '.join(names.ACTIONS)}.")
    kind = "nothing (None)" if yielded is None else f"a value of type {type(yielded).__name__[:40]}"
    raise ValueError(f"A yield must be the name of a primitive such as 'move_left', not {kind}.")
