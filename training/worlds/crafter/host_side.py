"""The view of coded actions, its decoder, and the conversion of a yield to a command. Standard library only.

A view holds immutable bytes; its attributes and the map memory are computed when they are first read.
"""

from __future__ import annotations

from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.library import COSTS as COSTS
from rlgpt.training.worlds.crafter.library import LIBRARY as LIBRARY
from rlgpt.training.worlds.crafter.library import TEXTS as TEXTS
from rlgpt.training.worlds.crafter.showing import moment as moment
from rlgpt.training.worlds.crafter.showing import picture as picture
from rlgpt.training.worlds.crafter.view import View

NATIVE_ACTION_SIZE = 1
ATTRIBUTES = tuple(name for name in vars(View) if not name.startswith("_"))
"""See `optional_parts.NamesAttributes`."""

_COMMANDS = {name: (index,) for index, name in enumerate(names.ACTIONS)}
_MAX_VIEWS_WITHOUT_MEMORY = 256
"""Each view without its map memory keeps the view before it alive. After this many in a row the memory is computed
though no code asked for it, so that they are freed."""


class Decoder:
    """The views of one env, one after the other: whole at the start of an option, then what each window shows."""

    __slots__ = ("_previous", "_views_without_memory")

    def __init__(self) -> None:
        self._previous: View | None = None
        self._views_without_memory = 0

    def view(self, packed: bytes) -> View:
        """Raises ValueError (a sentence) for bytes that are no packed view."""
        if len(packed) == names.SENSES and not packed[0]:
            self._previous = view = View(packed, self._previous)
            self._views_without_memory += 1
            if self._views_without_memory >= _MAX_VIEWS_WITHOUT_MEMORY:
                self._views_without_memory = 0
                view._memory_planes()
            return view
        if len(packed) != names.WHOLE or packed[0] != 1:
            raise ValueError("The packed view has the wrong size.")
        self._previous = view = View(packed, None)
        self._views_without_memory = 0
        return view


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
