"""Host side of the corridor toy: stdlib only."""

import struct

NATIVE_ACTION_SIZE = 1
PRIMITIVES = ("left", "right", "use")
_FORM = struct.Struct("<6Bh")


class View:
    """Immutable: position, key, opened, cell (what lies here), length, coin, steps_left."""

    __slots__ = ("_packed",)

    def __init__(self, packed):
        object.__setattr__(self, "_packed", _FORM.unpack(packed))

    def __setattr__(self, name, value):
        raise AttributeError("a view cannot be changed")

    position = property(lambda self: self._packed[0])
    key = property(lambda self: bool(self._packed[1]))
    opened = property(lambda self: bool(self._packed[2]))
    coin = property(lambda self: bool(self._packed[3]))
    cell = property(lambda self: ("floor", "key", "door", "coin")[self._packed[4]])
    length = property(lambda self: self._packed[5])
    steps_left = property(lambda self: self._packed[6])


def ahead(view):
    """Cells between the agent and the end of the corridor."""
    return view.length - 1 - view.position


LIBRARY = {"ahead": ahead}


class Decoder:
    def view(self, packed):
        return View(packed)


def decoder():
    return Decoder()


def encode(yielded):
    if type(yielded) is str and yielded in PRIMITIVES:
        return (PRIMITIVES.index(yielded),)
    raise ValueError(f"yield one of {', '.join(PRIMITIVES)}, not {yielded!r:.40}")
