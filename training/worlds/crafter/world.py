"""The Crafter world: the immutable description that the rest of `training` sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.crafter import frame, names
from rlgpt.training.worlds.crafter.features import DEFAULT, FEATURES
from rlgpt.training.worlds.crafter.score import score
from rlgpt.training.worlds.crafter.scripts import SCRIPTS, WORKSHOP
from rlgpt.training.worlds.crafter.sheet import PRIMITIVES, sheet
from rlgpt.training.worlds.crafter.tasks import TASKS
from rlgpt.training.worlds.protocol import Feature, NativeAction, Primitive, Script, Task, UnknownTask
from rlgpt.training.worlds.script_book import entries, first_tries

if TYPE_CHECKING:
    from rlgpt.training.worlds.crafter.ahead import WorldsAhead
    from rlgpt.training.worlds.crafter.env import CrafterEnv

SWORDS = ("make_wood_sword", "make_stone_sword", "make_iron_sword")


class CrafterWorld:
    """See `protocol.World`."""

    name = "crafter"
    version = "1.8.3"
    tasks: Mapping[str, Task] = TASKS
    action_nvec = (len(names.ACTIONS),)
    primitives: tuple[Primitive, ...] = PRIMITIVES
    features: Mapping[str, Feature] = FEATURES
    default_features = DEFAULT
    targets = names.TARGETS
    native_action_size = 1
    host_module = "rlgpt.training.worlds.crafter.host_side"
    frame_format = frame.FORMAT
    frame_module = "rlgpt.training.worlds.crafter.drawing"
    restorable = True
    pixel_shape = (names.PICTURE, names.PICTURE, 3)

    def __init__(self) -> None:
        self._ahead: WorldsAhead | None = None

    def native_action(self, action: Sequence[int]) -> NativeAction:
        return (int(action[0]),)

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> CrafterEnv:
        # The compiled game is only imported to play: what describes the world, or refuses a source, needs none of it.
        from rlgpt.training.worlds.crafter.env import CrafterEnv

        return CrafterEnv(self._task(task), features or self.default_features, pixels, self._worlds_ahead())

    def _worlds_ahead(self) -> WorldsAhead:
        """Checked once that this machine's numpy and opensimplex make the recorded worlds."""
        if self._ahead is None:
            from rlgpt.training.worlds.crafter.ahead import WorldsAhead
            from rlgpt.training.worlds.crafter.fingerprint import check_fingerprint

            check_fingerprint()
            self._ahead = WorldsAhead()
        return self._ahead

    def expect(self, seeds: Sequence[int]) -> None:
        """See `optional_parts.MakesAhead`."""
        self._worlds_ahead().expect(seeds)

    def score(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `optional_parts.Scores`."""
        return score(rates)

    def sheet(self, task: str) -> dict[str, Any]:
        return sheet(self._task(task))

    def scripts(self, task: str) -> tuple[Script, ...]:
        self._task(task)
        return SCRIPTS

    def _task(self, task: str) -> Task:
        try:
            return TASKS[task]
        except KeyError:
            raise UnknownTask(f"Crafter has no task {task!r}; its tasks are {', '.join(sorted(TASKS))}.") from None


def make_world() -> CrafterWorld:
    return CrafterWorld()


class FirstTryWorld(CrafterWorld):
    """The same world with the first version of each script and no repairs.

    Its needs make a plan that first versions can follow. They never fight, so nothing needs a sword; that of stone
    would wait for ever for a stone that the pickaxe has taken. They do not move a furnace, so it is placed once iron is
    held: before that it stood too far from the iron (31 of 300 diamonds, afterwards 85). `workshop`, the one action
    that no step needs, is offered to a policy.
    """

    def scripts(self, task: str) -> tuple[Script, ...]:
        return tuple(_with_needs(script) for script in first_tries((*super().scripts(task), WORKSHOP)))

    def sheet(self, task: str) -> dict[str, Any]:
        return {**super().sheet(task), "scripts": entries(self.scripts(task))}


def _with_needs(script: Script) -> Script:
    needs = [name for name in script.needs if name not in SWORDS]
    return replace(script, needs=(*needs, "collect_iron") if script.name == "place_furnace" else tuple(needs))


def make_first_try() -> FirstTryWorld:
    """For `--world rlgpt.training.worlds.crafter.world:make_first_try`."""
    return FirstTryWorld()
