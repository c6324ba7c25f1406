"""An episode as the frames that a console shows: all of its end, and ever fewer of what lies further back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rlgpt.training.host.api import FOLLOW_PLAN
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.runner import PLAN_ITEM
from rlgpt.training.options.slots import ActionSpace, primitive_names
from rlgpt.training.worlds.protocol import Env, NativeAction, World, WorldFailed

MOST = 40
"""Frames of a film; those of its last half are of consecutive env steps."""


@dataclass(frozen=True)
class FrameSnapshot:
    """What a console needs to draw an env after an env step, and to say what was done."""

    episode: int
    step: int
    decision: str
    """Name of the option that runs, or of the primitive that was chosen; "" at the beginning."""
    frame: bytes
    primitive: str = ""
    """What was done in the world; "" at the beginning."""
    inner: str = ""
    """The sub-action whose code ran, where the option runs one of several."""
    total: float = 0.0
    """Undiscounted reward of the episode so far."""


class Camera:
    """Names what is done in a world under an action space."""

    def __init__(self, world: World, space: ActionSpace) -> None:
        self._slots = space.slots
        self._primitives = primitive_names(world)
        named = {slot.source_hash: slot.name for slot in space.slots if slot is not None}
        self._items = [named.get(item.action.source_hash, "") for item in space.programs.plan]

    def take(self, lane: Lane, command: NativeAction, episode: int) -> FrameSnapshot:
        primitive = self._primitives.get(command, " ".join(map(str, command)))
        slot = self._slots[lane.slot] if lane.slot >= 0 else None
        inner = ""
        if slot is not None and slot.program == FOLLOW_PLAN and lane.running >= PLAN_ITEM and not lane.idle:
            inner = self._items[lane.running - PLAN_ITEM]
        option = slot.name if slot is not None else primitive
        return FrameSnapshot(episode, lane.env.steps, option, _frame_of(lane.env), primitive, inner, lane.total)


class Film:
    """Of one episode; a lane's `film` while that is played."""

    def __init__(self, camera: Camera, episode: int) -> None:
        self._camera, self._episode = camera, episode
        self.moments: list[FrameSnapshot] = []

    def start(self, env: Env) -> None:
        self.moments = [FrameSnapshot(self._episode, env.steps, "", _frame_of(env))]

    def step(self, lane: Lane, command: NativeAction) -> None:
        self.moments.append(self._camera.take(lane, command, self._episode))
        if len(self.moments) > MOST:
            half = MOST // 2
            self.moments[:half] = self.moments[:half:2]

    def end(self, total: float) -> list[FrameSnapshot]:
        """The film of an episode that came to this reward: a generated reward of the last env step came after it."""
        self.moments[-1] = replace(self.moments[-1], total=total)
        return self.moments


def saved(moments: Sequence[FrameSnapshot]) -> list[dict[str, Any]]:
    """As plain data."""
    return [asdict(moment) for moment in moments]


def loaded(moments: Sequence[Mapping[str, Any]]) -> list[FrameSnapshot]:
    return [FrameSnapshot(**moment) for moment in moments]


class Reels:
    """The film of the first episode of each kind: what is kept depends on no lane."""

    def __init__(self) -> None:
        self._film_of_kind: dict[str, tuple[int, list[FrameSnapshot]]] = {}
        self._counts: dict[str, int] = {}

    def add(self, kind: str, place: int, moments: list[FrameSnapshot]) -> None:
        """`place`: of the episode among all."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if kind not in self._film_of_kind or place < self._film_of_kind[kind][0]:
            self._film_of_kind[kind] = (place, moments)

    def of(self, *kinds: str) -> list[FrameSnapshot]:
        """Those of these kinds, one film after the other."""
        return [moment for kind in kinds if kind in self._film_of_kind for moment in self._film_of_kind[kind][1]]

    def most_frequent(self, most: int, first: str) -> list[FrameSnapshot]:
        """Of the kind `first`, and of so many others, the most frequent ones."""
        others = [kind for kind in self._film_of_kind if kind != first]
        others.sort(key=lambda kind: (-self._counts[kind], self._film_of_kind[kind][0]))
        return self.of(first, *others[:most])

    def save(self) -> dict[str, Any]:
        films = {kind: [place, saved(moments)] for kind, (place, moments) in self._film_of_kind.items()}
        return {"films": films, "counts": self._counts}

    def load(self, state: Mapping[str, Any]) -> None:
        self._counts = dict(state["counts"])
        self._film_of_kind = {kind: (place, loaded(moments)) for kind, (place, moments) in state["films"].items()}


def _frame_of(env: Env) -> bytes:
    frame = env.frame()
    if not isinstance(frame, bytes):
        raise WorldFailed(f"The world's frame() is a {type(frame).__name__} and no bytes.")
    return frame
