"""Host side of the corridor with two heads: a yield is a move, optionally `move+use`."""

from tests.worlds.corridor_host import LIBRARY, View, decoder

__all__ = ["LIBRARY", "NATIVE_ACTION_SIZE", "View", "decoder", "encode"]
NATIVE_ACTION_SIZE = 2
MOVES = ("stay", "left", "right")


def encode(yielded):
    if type(yielded) is str:
        move, _, use = yielded.partition("+")
        if move in MOVES and use in ("", "use"):
            return (MOVES.index(move), int(use == "use"))
    raise ValueError(f"yield stay, left or right, optionally with +use, not {yielded!r:.40}")
