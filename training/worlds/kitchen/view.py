"""The immutable view that coded actions see. Standard library only."""

from __future__ import annotations

from rlgpt.training.ordered_sets import FrozenSet
from rlgpt.training.worlds.kitchen.names import INDEX, MILESTONES, NAMES, VIEW

Place = tuple[int, int, int]


def _object(name: object) -> int:
    index = INDEX.get(name) if type(name) is str else None
    if index is None:
        raise ValueError(f"{str(name)[:30]!r} is no object; they are {', '.join(NAMES)}.")
    return index


class View:
    """What the robot is told at one env step. Places are (x, y, z) in mm: x right, y ahead, z up."""

    __slots__ = ("_fields",)
    _fields: tuple[int, ...]

    def __init__(self, packed: bytes) -> None:
        object.__setattr__(self, "_fields", VIEW.unpack(packed))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a view cannot be changed")

    @property
    def steps(self) -> int:
        """Env steps since the episode began."""
        return int(self._fields[0])

    @property
    def steps_left(self) -> int:
        """Env steps until the episode ends by time."""
        return int(self._fields[1])

    @property
    def hand(self) -> Place:
        """(x, y, z) of the hand, a point between the fingers, 5 cm behind their tips."""
        x, y, z = self._fields[2:5]
        return x, y, z

    @property
    def aim(self) -> Place:
        """(x, y, z) where the hand was told to be. Commands move the aim; the hand follows within a few env steps,
        and stays behind where something is in its way. A command leaves the aim at most 60 mm, in whatever direction,
        from where the hand is then; in that env step the hand may still give way a little."""
        x, y, z = self._fields[5:8]
        return x, y, z

    @property
    def lag(self) -> Place:
        """(dx, dy, dz) from the hand to the aim: large while the hand pushes or pulls against something. The arm bends,
        so it need not point along the push. It is no touch while the hand moves freely: 2 mm at 12 mm an env step, up
        to 45 mm at 40. Three env steps after the last command it is below 3 mm where nothing is in the way."""
        hand, aim = self._fields[2:5], self._fields[5:8]
        return aim[0] - hand[0], aim[1] - hand[1], aim[2] - hand[2]

    @property
    def roll(self) -> int:
        """Turn of the hand about its own axis in mrad: at 0 the fingers open along x, at 1571 or -1571 along z."""
        return int(self._fields[8])

    @property
    def gap(self) -> int:
        """Width between the fingers in mm, 0 to 80."""
        return int(self._fields[9])

    @property
    def fingers(self) -> int:
        """What they were told last: 1 open, -1 close. They take about 8 env steps to close."""
        return int(self._fields[10])

    @property
    def holding(self) -> bool:
        """The fingers were told to close and have come to rest on something."""
        return bool(self._fields[11])

    @property
    def reached(self) -> FrozenSet:
        """Milestones reached in this episode, such as "kettle_reached", "kettle_grasped", "kettle_ajar" (a fifth of
        the way) and "kettle" (it was within the task's threshold)."""
        bits = self._fields[12]
        return FrozenSet(name for bit, name in enumerate(MILESTONES) if bits >> bit & 1)

    def opened(self, name: str) -> float:
        """How far an object has come to its goal: 0.0 as at the start, 1.0 within the task's threshold, never more."""
        return float(self._fields[13 + _object(name)]) / 1000

    def handle(self, name: str) -> Place:
        """(x, y, z) where the middle of the handle of an object is said to be; it moves with its door."""
        index = 13 + len(NAMES) + 3 * _object(name)
        x, y, z = self._fields[index : index + 3]
        return x, y, z
