"""MineDojo as a `World`: tasks, the paper's [12, 3] heads, features, script book, world sheet."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from rlgpt.training.worlds.away.world import Games
from rlgpt.training.worlds.minedojo import catalogue, features, mineclip, scripts, sheet
from rlgpt.training.worlds.minedojo.away import RESOURCE, AwayBridge
from rlgpt.training.worlds.minedojo.bridge import need_interpreter
from rlgpt.training.worlds.minedojo.env import MineDojoEnv
from rlgpt.training.worlds.minedojo.launching import GamePool
from rlgpt.training.worlds.minedojo.processes import sweep_folder
from rlgpt.training.worlds.minedojo.settings import Settings, folder, from_environment
from rlgpt.training.worlds.minedojo.tasks import TaskList
from rlgpt.training.worlds.optional_parts import WorldEvent, log_event
from rlgpt.training.worlds.protocol import Feature, NativeAction, Primitive, Script, Task

PRIMITIVES = (
    Primitive("none", "Stand still."),
    Primitive("forward", "Walk forward, 0.2 blocks a step."),
    Primitive("back", "Walk back."),
    Primitive("left", "Step to the left."),
    Primitive("right", "Step to the right."),
    Primitive("jump", "Jump."),
    Primitive("sneak", "Sneak."),
    Primitive("sprint", "Hold sprint."),
    Primitive("look_up", "Look 30 degrees further up."),
    Primitive("look_down", "Look 30 degrees further down."),
    Primitive("turn_left", "Turn 30 degrees to the left."),
    Primitive("turn_right", "Turn 30 degrees to the right."),
)
FUNCTION_OF_HEAD = (0, 1, 3)
"""Head 1: nothing, use, attack, as the native function."""


class MineDojoWorld:
    """See `protocol.World`. `report` receives a `WorldEvent` for each process, fault, restart and remake."""

    name = "minedojo"
    version = f"minedojo-{catalogue.CLIENT}+1"
    action_nvec = (12, 3)
    primitives = PRIMITIVES
    targets = features.TARGETS
    native_action_size = 8
    host_module = "rlgpt.training.worlds.minedojo.host_side"
    frame_format = "jpeg"
    frame_module = ""
    restorable = False
    slow = True
    reset_steps = 8
    """Game ticks of a fast reset: the client sends 6 to 8 messages for one, counted with the double of the game."""

    def __init__(self, settings: Settings | None = None, report: Callable[[WorldEvent], None] = log_event) -> None:
        self.settings = settings or from_environment()
        self.report = report
        self.max_envs = len(self.settings.port_list) or self.settings.games
        self._pool = GamePool(self.settings.port_list, self.max_envs)
        atexit.register(self.close)
        self._leftovers_ended = False
        height, width = self.settings.image_size
        self.pixel_shape: tuple[int, int, int] | None = (height, width, 3)
        self.default_features = features.DEFAULT

    @cached_property
    def tasks(self) -> Mapping[str, Task]:
        """The paper's tasks always; the client's own once it is installed (see `catalogue.stored_or_refreshed`)."""
        return self._tasks

    @cached_property
    def _tasks(self) -> TaskList:
        return TaskList(catalogue.stored_or_refreshed(self.settings))

    @cached_property
    def features(self) -> Mapping[str, Feature]:
        offered = dict(features.FEATURES)
        if not mineclip.available():
            offered["mineclip"] = Feature("mineclip", mineclip.SIZE, "MineCLIP's embedding of the frame", -10.0, 10.0)
        return offered

    def native_action(self, action: Sequence[int]) -> NativeAction:
        return (*features.PRIMITIVE_VECTORS[action[0]], FUNCTION_OF_HEAD[action[1]], 0, 0)

    def make(self, task: str, *, features: Sequence[str] | None = None, pixels: bool = False) -> MineDojoEnv:
        """An env whose game starts at the first reset. Raises `UnknownTask`, `MineDojoError`."""
        client_task = self._tasks.client_task(task)
        if not self._leftovers_ended:
            self._leftovers_ended = True
            for record in sweep_folder(folder() / "runs"):
                self.report(WorldEvent("process", f"Ended what an earlier session had left of process {record.pid}."))
        chosen = self.default_features if features is None else tuple(features)
        unknown = [name for name in chosen if name not in self.features]
        if unknown:
            raise KeyError(f"MineDojo has no feature called {', '.join(unknown)}.")
        clip = self._mineclip(client_task.task.prompt) if "mineclip" in chosen else None
        settings = replace(self.settings, image="160x256") if clip is not None else self.settings
        needs_pixels = pixels or clip is not None
        return MineDojoEnv(
            client_task, settings, chosen, needs_pixels, self._pool, lambda event: self.report(event), clip
        )

    def _mineclip(self, prompt: str) -> mineclip.Embedding:
        listed_tasks = self._tasks.catalogue.get("tasks", {}).values()
        return mineclip.Embedding(prompt, mineclip.negatives(prompt, [str(entry["prompt"]) for entry in listed_tasks]))

    def place_games(self, games: Games) -> None:
        """See `away.world.PlacesGames`. Without a limit on games (`local`) nothing changes, because each game is a
        process of its own on this machine anyway."""
        room = games.room(RESOURCE)
        if room is not None:
            self.max_envs = room
            self._pool = GamePool((), room, partial(AwayBridge, games))

    def ready(self) -> None:
        """Raises `MineDojoError` where no session can start."""
        need_interpreter(self.settings)

    def close(self) -> None:
        """End the games that no environment uses."""
        self._pool.close()

    def scripts(self, task: str) -> tuple[Script, ...]:
        return scripts.for_task(self._tasks.client_task(task), self._tasks.catalogue.get("recipes", {}))

    def sheet(self, task: str) -> dict[str, Any]:
        client_task, scripts = self._tasks.client_task(task), self.scripts(task)
        return sheet.for_task(client_task, self._tasks.catalogue, PRIMITIVES, scripts, self.max_envs)


def make_world() -> MineDojoWorld:
    """The world with the settings of the environment. Raises `BadSetting`."""
    return MineDojoWorld()
