"""The view of coded actions, its decoder, and how a yield becomes a command. Standard library only.

A view is a window on immutable bytes: decoding copies a few rows into the map memory and nothing else;
attributes are read when they are asked for.
"""

from __future__ import annotations


from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.library import LIBRARY as LIBRARY
from rlgpt.training.worlds.crafter.view import View

COMMAND_SIZE = 1

_COMMANDS = {name: (index,) for index, name in enumerate(names.ACTIONS)}
_STARTS = tuple(
    (
        names.AT_MATERIALS + row * names.WIDTH,
        row * names.MEMORY_WIDTH,
    )
    for row in range(names.HEIGHT)
)


class Decoder:
    """Keeps the map memory of one env: whole at the start of an option, then what each window shows."""

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory = bytearray(names.MEMORY_WIDTH * names.MEMORY_HEIGHT)

    def view(self, packed: bytes) -> View:
        """Raises ValueError (a sentence) for bytes that are no packed view."""
        if len(packed) < names.SENSES:
            raise ValueError("The packed view is cut short.")
        memory = self._memory
        if packed[names.AT_WHOLE]:
            if len(packed) != names.SENSES + len(memory):
                raise ValueError("The map memory of the packed view has the wrong size.")
            memory[:] = packed[names.AT_MEMORY :]
        else:
            corner = packed[names.AT_Y] * names.MEMORY_WIDTH + packed[names.AT_X]
            for start, offset in _STARTS:
                at = corner + offset
                memory[at : at + names.WIDTH] = packed[start : start + names.WIDTH]
        return View(packed, bytes(memory))


def decoder() -> Decoder:
    return Decoder()


def encode(yielded: object) -> tuple[int, ...]:
    """The command of a yield: the name of a primitive, exactly a `str`."""
    if type(yielded) is str:
        command = _COMMANDS.get(yielded)
        if command is not None:
            return command
        raise ValueError(f"{yielded[:40]!r} is no primitive; yield one of {', '.join(names.ACTIONS)}.")
    raise ValueError(f"A yield must be the name of a primitive such as 'move_left', not {_kind(yielded)}.")


def _kind(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__[:40]}"
