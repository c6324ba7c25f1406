"""One running MineDojo task behind the Env protocol: bounded recovery, our time limit and our death rule."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.minedojo import doctor
from rlgpt.training.worlds.minedojo import features as rows
from rlgpt.training.worlds.minedojo.bridge import GameBridge, MineDojoError
from rlgpt.training.worlds.minedojo.caption import caption, captioned
from rlgpt.training.worlds.minedojo.features import GameReading, command_category
from rlgpt.training.worlds.minedojo.host_side import NVEC
from rlgpt.training.worlds.minedojo.items import CRAFT_ITEMS
from rlgpt.training.worlds.minedojo.launching import GamePool, Parked
from rlgpt.training.worlds.minedojo.mineclip import Embedding
from rlgpt.training.worlds.minedojo.processes import ProcessRecord
from rlgpt.training.worlds.minedojo.reply import check
from rlgpt.training.worlds.minedojo.sense import Seen, bearing, block_name, lidar, sights
from rlgpt.training.worlds.minedojo.settings import Settings
from rlgpt.training.worlds.minedojo.tasks import ClientTask, counted
from rlgpt.training.worlds.optional_parts import Ending, WorldEvent
from rlgpt.training.worlds.protocol import NativeAction, StepResult

HOSTILE = frozenset({
    "zombie", "skeleton", "spider", "creeper", "witch", "enderman", "husk", "slime", "silverfish", "pigzombie", "blaze",
    "ghast", "magmacube", "witherskeleton", "endermite", "shulker", "cavespider",
})  # fmt: skip
"""Class names of the game's entities, in lower case and without `Entity`."""
DANGER = 4.0
FRAME_WIDTH, FRAME_QUALITY = 192, 60
LOST = frozenset({"game", "stalled", "died", "memory", "client"})
"""Faults after which a fresh child is worth a try."""


def _legal(command: NativeAction) -> list[int]:
    return [max(0, min(size - 1, int(value))) for value, size in zip(command, NVEC, strict=True)]


class MineDojoEnv:
    """See `protocol.Env`. `reset` and `step` raise `MineDojoError` when the game cannot be brought back."""

    def __init__(
        self, made: ClientTask, settings: Settings, features: Sequence[str], pixels: bool,
        pool: GamePool, report: Callable[[WorldEvent], None], embedding: Embedding | None = None,
    ) -> None:  # fmt: skip
        self.task = made.task
        self.steps = 0
        self._made, self._settings, self._pixels = made, settings, pixels
        self._features = tuple(features)
        self._report = report
        self._counted = {m: counted(m) for m in self.task.milestones if counted(m)[0] > 1}
        self._embedding = embedding
        self._pool = pool
        self._port: int | None = None
        self._has_room = False
        self._bridge: GameBridge | None = None
        self._key = json.dumps([made.client_id, made.arguments, pixels], sort_keys=True, default=dict)
        self._episodes = 0
        self._failures = 0
        self._malmo = ""
        """The game's folder, once the client has named it."""
        self._broken = False
        """The game of this episode was lost, and `step` has told so."""
        self._begun = False
        """A step or a reset was sent and not answered yet."""
        self._reply: dict[str, Any] = {}
        self._clear()

    # ---- episodes -----------------------------------------------------------------------------------
    def reset(self, seed: int) -> None:
        """Start an episode. `seed` decides where the task's animals appear; terrain, weather and the animals'
        walks are the game's own, so an episode cannot be repeated."""
        if self._remakes() and not self._begun:
            self._report(WorldEvent("remake", f"The world is generated anew after {self._episodes} episodes."))
            self._drop(orderly=True)
        while True:
            try:
                reply = self._begin(seed)
                break
            except MineDojoError as error:
                self._fault(error)
        self._episodes += 1
        self._broken = False
        self._clear()
        self._take(reply, self._noop)
        place = reply["place"]
        self._origin = (place[0], place[1], place[2])
        self._start.update(self._counts)
        self._most.update(self._counts)
        if self._embedding is not None:
            self._embedding.clear()

    def _remakes(self) -> bool:
        every = self._settings.remake_every
        return bool(self._bridge is not None and every and self._episodes and self._episodes % every == 0)

    def begin_reset(self, seed: int) -> None:
        """See `optional_parts.StepsElsewhere`: of a game that runs; a new one is launched in `reset`."""
        if self._bridge is None or self._broken or self._remakes():
            return
        with suppress(MineDojoError):
            self._bridge.send("reset", seed=seed)
            self._begun = True

    def _begin(self, seed: int) -> dict[str, Any]:
        if self._bridge is None and not self._has_room:
            parked = self._pool.take(self._key)
            if parked is not None:
                self._bridge, self._port, self._episodes = parked.bridge, parked.port, parked.episodes
            else:
                self._port = self._pool.room()
            self._has_room = True
        if self._bridge is None:
            with self._pool.launched(self._settings, self._started) as bridge:
                self._bridge = bridge
                self._malmo = str(bridge.about["malmo"])
                bridge.ask(
                    "make", self._settings.reset_timeout, task=self._made.client_id,
                    arguments=dict(self._made.arguments), rays=lidar(self._settings.lidar_range),
                    image=list(self._settings.image_size), pixels=self._pixels, lean=self._settings.patch,
                    port=self._port, socket_timeout=0.9 * self._settings.step_timeout,
                )  # fmt: skip
                return self._sound(bridge.ask("reset", self._settings.reset_timeout, seed=seed))
        begun, self._begun = self._begun, False
        if not begun:
            self._bridge.send("reset", seed=seed)
        return self._sound(self._bridge.answer("reset", self._settings.reset_timeout))

    def _sound(self, reply: dict[str, Any]) -> dict[str, Any]:
        height, width = self._settings.image_size
        return check(reply, height * width * 3 if self._pixels else 0)

    def _started(self, record: ProcessRecord) -> None:
        self._report(WorldEvent("process", f"MineDojo runs as process {record.pid}.", vars(record)))

    def _fault(self, error: MineDojoError) -> None:
        """Report, drop the child, and raise unless another try is allowed."""
        self._report(WorldEvent("fault", str(error), {"kind": error.kind, "last_words": error.last_words}))
        self._drop(orderly=False)
        if error.kind not in LOST:
            raise error
        self._failures += 1
        if self._failures > self._settings.restarts:
            raise MineDojoError(
                "restarts",
                f"MineDojo failed {self._failures} times in a row without finishing an episode; the last time: {error}"
                + self._lacking(),
                error.last_words,
            ) from error
        again = f"MineDojo is started again ({self._failures} of {self._settings.restarts})."
        self._report(WorldEvent("restart", again))

    def _lacking(self) -> str:
        """What this machine lacks for a game that never played an episode; the game's own last words rarely say."""
        if self._port is not None or self._episodes or not self._malmo:
            return ""
        findings = [doctor.jar(Path(self._malmo)), doctor.java(), doctor.display()]
        told = " ".join(f"{found.sentence} ({found.cure})" for found in findings if not found.ok)
        return f" This machine lacks something for it: {told}" if told else ""

    def begin_step(self, command: NativeAction) -> None:
        """See `optional_parts.StepsElsewhere`. What goes wrong here, `step` meets and tells."""
        if self._bridge is None or self._broken:
            return
        with suppress(MineDojoError):
            self._bridge.send("step", command=_legal(command))
            self._begun = True

    def step(self, command: NativeAction) -> StepResult:
        """One env step. When the game is lost in it the episode is truncated and the next reset restarts."""
        if self._broken or not self._reply:
            raise MineDojoError("order", "The episode was lost with its game; reset starts another one.")
        if self._bridge is None:  # lost since the last step, by `frame`
            self._broken = True
            return StepResult(0.0, False, True)
        legal = _legal(command)
        before = self._reply["life"][0]
        begun, self._begun = self._begun, False
        try:
            if not begun:
                self._bridge.send("step", command=legal)
            reply = self._sound(self._bridge.answer("step", self._settings.step_timeout))
        except MineDojoError as error:
            self._broken = True
            self._fault(error)
            return StepResult(0.0, False, True)
        self.steps += 1
        hostile = self._hostile_near()
        self._take(reply, tuple(legal))
        self._interrupt = reply["life"][0] < before - 0.01 or (self._hostile_near() and not hostile)
        done = self.succeeded()
        terminated = done or not reply["alive"] or self.steps >= self.task.horizon
        if terminated:
            self._failures = 0
        return StepResult(self._reward(done), terminated, bool(reply["ended"]) and not terminated)

    def _reward(self, done: bool) -> float:
        """The task's published reward, or the released trainer's (100 success - 1 + MineCLIP)."""
        if self._settings.reward == "paper":
            return 100.0 * done - 1.0 + (self._embedding.reward() if self._embedding is not None else 0.0)
        return float(self._reply["reward"]) if self._made.goal == "client" else float(done)

    def close(self) -> None:
        """Leave the game to the next environment of the same client task, or end it if it is not sound."""
        if not self._has_room:
            return
        self._has_room = False
        if self._bridge is not None and not self._broken and not self._begun:
            self._pool.park(Parked(self._key, self._bridge, self._port, self._episodes))
            self._bridge = None
            return
        self._drop(orderly=False)
        self._pool.leave(self._port)

    def _drop(self, orderly: bool) -> None:
        bridge, self._bridge, self._begun = self._bridge, None, False
        if bridge is None:
            return
        if orderly:
            bridge.close()
        else:
            bridge.end()

    # ---- what happened ------------------------------------------------------------------------------
    _noop: NativeAction = (0, 0, 0, 12, 12, 0, 0, 0)

    def _clear(self) -> None:
        self.steps = 0
        self._seen: list[Seen] = []
        self._memory: dict[str, tuple[Seen, int]] = {}
        self._reached: set[str] = set()
        self._cells: set[tuple[int, int]] = set()
        self._counts: dict[str, int] = {}
        self._start: dict[str, int] = {}
        self._most: dict[str, int] = {}
        self._origin = (0.0, 0.0, 0.0)
        self._novelty = 0
        self._interrupt = False
        self._previous = command_category(self._noop)

    def _take(self, reply: dict[str, Any], command: NativeAction) -> None:
        self._reply = reply
        self._previous = command_category(command)
        self._seen = sights(reply["place"], reply["rays"])
        for seen in self._seen:
            self._memory[seen.name] = (seen, self.steps)
        counts: dict[str, int] = {}
        for _, name, count, _ in reply["inventory"]:
            counts[name] = counts.get(name, 0) + count
        self._counts = counts
        if self.steps:
            self._mark(counts)
        if self._embedding is not None:
            self._embedding.add(self.pixels())

    def _mark(self, counts: dict[str, int]) -> None:
        """Milestones, inventory maxima and new cells."""
        for name, count in counts.items():
            if count > self._most.get(name, 0):
                self._most[name] = count
                self._novelty += 1
            gained = count - self._start.get(name, 0)
            if gained > 0:
                self._reached.add(name)
            self._reached.update(m for m, (least, item) in self._counted.items() if item == name and gained >= least)
        for flag, name in zip(self._reply["near"], ("near_table", "near_furnace"), strict=True):
            if flag and name not in self._reached:
                self._reached.add(name)
                self._novelty += 1
        if self.succeeded():
            self._reached.add(self.task.milestones[-1])
        cell = (math.floor(self._reply["place"][0]), math.floor(self._reply["place"][2]))
        if cell not in self._cells:
            self._cells.add(cell)
            self._novelty += 1

    def _hostile_near(self) -> bool:
        return any(seen.name in HOSTILE and seen.distance < DANGER for seen in self._seen)

    def succeeded(self) -> bool:
        if self._made.goal == "near_table":
            return bool(self._reply["near"][0])
        if self._made.goal == "near_furnace":
            return bool(self._reply["near"][1])
        if self._made.goal == "milestone":
            return self.task.milestones[-1] in self._reached
        return bool(self._reply["success"])

    def ending(self) -> Ending:
        """See `optional_parts.TellsEnding`. The game does not say what killed the player."""
        health, food, _, oxygen = self._reply["life"][:4]
        return Ending("", {"health": float(health), "food": float(food), "oxygen": float(oxygen)})

    def milestones(self) -> frozenset[str]:
        return frozenset(self._reached)

    def interrupt(self) -> bool:
        return self._interrupt

    def waiting(self) -> bool:
        return bool(self._reply["life"][6])

    def progress_key(self) -> int:
        """Of the 1 m cell, the 15-degree bins of the look, and the inventory."""
        x, y, z, yaw, pitch = self._reply["place"][:5]
        where = (math.floor(x), math.floor(y), math.floor(z), round(yaw / 15), round(pitch / 15))
        return zlib.crc32(repr((where, sorted(self._counts.items()))).encode())

    def novelty(self) -> int:
        return self._novelty

    def distance(self, target: str) -> float | None:
        return next((seen.distance for seen in self._seen if seen.name == target), None)

    # ---- what the policy, the code and the operator see ---------------------------------------------
    def observe(self) -> NDArray[np.float32]:
        moment = GameReading(
            self._reply, self._seen, self._memory, self._made.target, self.steps, self.task.horizon, self._origin,
            self._previous,
        )  # fmt: skip
        values: list[float] = []
        for name in self._features:
            if name == "mineclip":
                assert self._embedding is not None
                values.extend(self._embedding.vector().tolist())
            else:
                values.extend(rows.ROWS[name](moment))
        return np.asarray(values, dtype=np.float32)

    def pixels(self) -> NDArray[np.uint8]:
        """Raises `MineDojoError` unless the env was made with pixels."""
        if not self._pixels:
            raise MineDojoError("order", "This environment was made without pixels.")
        height, width = self._settings.image_size
        return np.frombuffer(self._reply["rgb"], np.uint8).reshape(height, width, 3)

    def action_masks(self) -> NDArray[np.bool_]:
        """All 12 + 3: none of the policy's own actions needs a slot or an ingredient."""
        return np.ones(15, dtype=np.bool_)

    def view(self, whole: bool) -> bytes:
        """Always whole: a view of Minecraft is about 3 kB with its memories."""
        reply = self._reply
        x, y, z, yaw, pitch, biome, light = reply["place"][:7]
        equip, place, _, craft = (np.unpackbits(np.frombuffer(mask, np.uint8)) for mask in reply["masks"])
        now = {seen.name for seen in self._seen}
        return json.dumps({
            "step": self.steps, "time_left": max(0, self.task.horizon - self.steps),
            "health": reply["life"][0], "food": reply["life"][1], "armor": reply["life"][2],
            "oxygen": reply["life"][3], "x": round(x, 3), "y": round(y, 3), "z": round(z, 3),
            "yaw": round(yaw, 2), "pitch": round(pitch, 2), "biome": biome, "light": light,
            "slots": [entry[:3] for entry in reply["inventory"]], "holding": reply["equipment"][0],
            "near_table": bool(reply["near"][0]), "near_furnace": bool(reply["near"][1]),
            "sights": [self._sight(seen, 0) for seen in self._seen],
            "memories": [self._sight(s, self.steps - at) for name, (s, at) in self._memory.items() if name not in now],
            "voxels": [block_name(name) for name in reply["voxels"]],
            "craftable": [CRAFT_ITEMS[i] for i in np.flatnonzero(craft[:244])],
            "equippable": np.flatnonzero(equip[:36]).tolist(), "placeable": np.flatnonzero(place[:36]).tolist(),
            "refused": reply["refused"],
        }, separators=(",", ":")).encode()  # fmt: skip

    def _sight(self, seen: Seen, age: int) -> list[Any]:
        turn, tilt, distance = bearing(self._reply["place"], seen.x, seen.y, seen.z)
        return [seen.name, seen.is_animal, round(seen.distance if age == 0 else distance, 2), round(turn, 1),
                round(tilt, 1), age]  # fmt: skip

    def frame(self) -> bytes:
        """A small JPEG of the game's own frame with its caption; empty when the game has just been lost."""
        if self._bridge is None:
            return b""
        try:
            reply = self._bridge.ask("jpeg", self._settings.step_timeout, width=FRAME_WIDTH, quality=FRAME_QUALITY)
        except MineDojoError as error:
            self._fault(error)
            return b""
        return captioned(bytes(reply["jpeg"]), caption(self._reply))

    def save(self) -> bytes:
        raise MineDojoError("order", "Minecraft's state cannot be saved exactly; this world is not restorable.")

    def restore(self, state: bytes) -> None:
        raise MineDojoError("order", "Minecraft's state cannot be restored; this world is not restorable.")
