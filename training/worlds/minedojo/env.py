"""One running MineDojo task as a `protocol.Env`. It restarts a lost game a limited number of times, and adds the time
limit and the end by death that MineDojo itself has not."""

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
from rlgpt.training.worlds.minedojo.host_side import NOOP, NVEC
from rlgpt.training.worlds.minedojo.items import CRAFT_ITEMS
from rlgpt.training.worlds.minedojo.launching import GamePool, ParkedGame
from rlgpt.training.worlds.minedojo.mineclip import Embedding
from rlgpt.training.worlds.minedojo.processes import ProcessRecord
from rlgpt.training.worlds.minedojo.reply import check
from rlgpt.training.worlds.minedojo.sense import Sighting, bearing, block_name, lidar, sights
from rlgpt.training.worlds.minedojo.settings import Settings
from rlgpt.training.worlds.minedojo.tasks import ClientTask, split_count
from rlgpt.training.worlds.optional_parts import Ending, WorldEvent
from rlgpt.training.worlds.protocol import NativeAction, StepResult

HOSTILE = frozenset({
    "zombie", "skeleton", "spider", "creeper", "witch", "enderman", "husk", "slime", "silverfish", "zombie_pigman",
    "blaze", "ghast", "magma_cube", "wither_skeleton", "endermite", "shulker", "cave_spider",
})  # fmt: skip
"""Names of entities in `Sighting`."""
DANGER_DISTANCE = 4.0
"""Blocks. A hostile entity that comes nearer interrupts an option."""
FRAME_WIDTH, FRAME_QUALITY = 192, 60
"""Pixels, and JPEG quality in percent, of the frames that the console draws."""
RESTARTABLE = frozenset({"game", "stalled", "died", "memory", "client"})
"""Kinds of `MineDojoError` after which a new child process is started."""


def _clip_command(command: NativeAction) -> list[int]:
    return [max(0, min(size - 1, int(value))) for value, size in zip(command, NVEC, strict=True)]


class MineDojoEnv:
    """See `protocol.Env`. `reset` and `step` raise `MineDojoError` when the game cannot be brought back."""

    def __init__(
        self, client_task: ClientTask, settings: Settings, features: Sequence[str], pixels: bool,
        pool: GamePool, report: Callable[[WorldEvent], None], embedding: Embedding | None = None,
    ) -> None:  # fmt: skip
        self.task = client_task.task
        self.steps = 0
        self._client_task, self._settings, self._pixels = client_task, settings, pixels
        self._features = tuple(features)
        self._report = report
        self._counted_milestones = {
            name: split_count(name) for name in self.task.milestones if split_count(name)[0] > 1
        }
        self._embedding = embedding
        self._pool = pool
        self._port: int | None = None
        self._has_room = False
        """The pool counts this env among its games in use."""
        self._bridge: GameBridge | None = None
        self._pool_key = json.dumps(
            [client_task.client_id, client_task.arguments, pixels], sort_keys=True, default=dict
        )
        self._episodes = 0
        """Episodes of this game, also those of envs that had it before."""
        self._failures = 0
        """Games lost since an episode was last finished."""
        self._malmo = ""
        """The game's folder, once the client has named it."""
        self._episode_lost = False
        """The game of this episode was lost, and `step` has returned `truncated` for it."""
        self._awaiting_reply = False
        """A step or a reset was sent and not answered yet."""
        self._reply: dict[str, Any] = {}
        """The child's latest reply, see `reply.Reply`."""
        self._clear_episode()

    # ---- episodes -----------------------------------------------------------------------------------
    def reset(self, seed: int) -> None:
        """Start an episode. `seed` decides where the task's animals appear; terrain, weather and the animals'
        walks are the game's own, so an episode cannot be repeated."""
        if not self._has_room:  # before the question of a new world: the parked game has episodes behind it
            self._take_parked_game()
        if self._must_remake() and not self._awaiting_reply:
            self._report(WorldEvent("remake", f"The world is generated anew after {self._episodes} episodes."))
            self._end_game(orderly=True)
        while True:
            try:
                reply = self._reset_game(seed)
                break
            except MineDojoError as error:
                self._handle_fault(error)
        self._episodes += 1
        self._episode_lost = False
        self._clear_episode()
        self._read_reply(reply, NOOP)
        place = reply["place"]
        self._origin = (place[0], place[1], place[2])
        self._start_counts.update(self._counts)
        self._max_counts.update(self._counts)
        if self._embedding is not None:
            self._embedding.clear()

    def _must_remake(self) -> bool:
        every = self._settings.remake_every
        return bool(self._bridge is not None and every and self._episodes and self._episodes % every == 0)

    def begin_reset(self, seed: int) -> None:
        """See `optional_parts.StepsElsewhere`. Nothing is sent where `reset` must launch a game first."""
        if self._bridge is None or self._episode_lost or self._must_remake():
            return
        with suppress(MineDojoError):
            self._bridge.send("reset", seed=seed)
            self._awaiting_reply = True

    def _take_parked_game(self) -> None:
        game = self._pool.take(self._pool_key)
        if game is not None:
            self._bridge, self._port, self._episodes, self._has_room = game.bridge, game.port, game.episodes, True

    def _reset_game(self, seed: int) -> dict[str, Any]:
        if not self._has_room:
            self._port = self._pool.reserve()
            self._has_room = True
        if self._bridge is None:
            with self._pool.launch(self._settings, self._report_process) as bridge:
                self._bridge = bridge
                self._malmo = str(bridge.about["malmo"])
                bridge.ask(
                    "make", self._settings.reset_timeout, task=self._client_task.client_id,
                    arguments=dict(self._client_task.arguments), rays=lidar(self._settings.lidar_range),
                    image=list(self._settings.image_size), pixels=self._pixels, lean=self._settings.patch,
                    port=self._port, socket_timeout=0.9 * self._settings.step_timeout,
                )  # fmt: skip
                return self._check_reply(bridge.ask("reset", self._settings.reset_timeout, seed=seed))
        was_sent, self._awaiting_reply = self._awaiting_reply, False
        if not was_sent:
            self._bridge.send("reset", seed=seed)
        return self._check_reply(self._bridge.answer("reset", self._settings.reset_timeout))

    def _check_reply(self, reply: dict[str, Any]) -> dict[str, Any]:
        height, width = self._settings.image_size
        return check(reply, height * width * 3 if self._pixels else 0)

    def _report_process(self, record: ProcessRecord) -> None:
        self._report(WorldEvent("process", f"MineDojo runs as process {record.pid}.", vars(record)))

    def _handle_fault(self, error: MineDojoError) -> None:
        """Report the fault and end the game. Raises the error unless another try is allowed."""
        self._report(WorldEvent("fault", str(error), {"kind": error.kind, "last_words": error.last_words}))
        self._end_game(orderly=False)
        if error.kind not in RESTARTABLE:
            raise error
        self._failures += 1
        if self._failures > self._settings.restarts:
            raise MineDojoError(
                "restarts",
                f"MineDojo failed {self._failures} times in a row without finishing an episode; the last time: {error}"
                + self._missing_parts(),
                error.last_words,
            ) from error
        again = f"MineDojo is started again ({self._failures} of {self._settings.restarts})."
        self._report(WorldEvent("restart", again))

    def _missing_parts(self) -> str:
        """A sentence on what this machine lacks, for a game that never played an episode: the last lines of its log
        rarely say so. Empty if nothing is missing."""
        if self._port is not None or self._episodes or not self._malmo:
            return ""
        findings = [doctor.jar(Path(self._malmo)), doctor.java(), doctor.display()]
        sentences = " ".join(f"{finding.sentence} ({finding.cure})" for finding in findings if not finding.ok)
        return f" This machine lacks something for it: {sentences}" if sentences else ""

    def begin_step(self, command: NativeAction) -> None:
        """See `optional_parts.StepsElsewhere`. An error here is raised again, and handled, in `step`."""
        if self._bridge is None or self._episode_lost:
            return
        with suppress(MineDojoError):
            self._bridge.send("step", command=_clip_command(command))
            self._awaiting_reply = True

    def step(self, command: NativeAction) -> StepResult:
        """One env step. When the game is lost in it the episode is truncated and the next reset restarts."""
        if self._episode_lost or not self._reply:
            raise MineDojoError("order", "The episode was lost with its game; reset starts another one.")
        if self._bridge is None:  # lost since the last step, by `frame`
            self._episode_lost = True
            return StepResult(0.0, False, True)
        native = _clip_command(command)
        before = self._reply["life"][0]
        was_sent, self._awaiting_reply = self._awaiting_reply, False
        try:
            if not was_sent:
                self._bridge.send("step", command=native)
            reply = self._check_reply(self._bridge.answer("step", self._settings.step_timeout))
        except MineDojoError as error:
            self._episode_lost = True
            self._handle_fault(error)
            return StepResult(0.0, False, True)
        self.steps += 1
        hostile = self._hostile_near()
        self._read_reply(reply, tuple(native))
        self._interrupt = reply["life"][0] < before - 0.01 or (self._hostile_near() and not hostile)
        done = self.succeeded()
        terminated = done or not reply["alive"] or self.steps >= self.task.horizon
        if terminated:
            self._failures = 0
        return StepResult(self._reward(done), terminated, bool(reply["ended"]) and not terminated)

    def _reward(self, done: bool) -> float:
        """The task's published reward, or that of RL-GPT's released trainer (100 success - 1 + MineCLIP)."""
        if self._settings.reward == "paper":
            return 100.0 * done - 1.0 + (self._embedding.reward() if self._embedding is not None else 0.0)
        return float(self._reply["reward"]) if self._client_task.goal == "client" else float(done)

    def close(self) -> None:
        """Park the game for the next environment of the same client task, or end it if it cannot be used again."""
        if not self._has_room:
            return
        self._has_room = False
        if self._bridge is not None and not self._episode_lost and not self._awaiting_reply:
            self._pool.park(ParkedGame(self._pool_key, self._bridge, self._port, self._episodes))
            self._bridge = None
            return
        self._end_game(orderly=False)
        self._pool.give_up(self._port)

    def _end_game(self, orderly: bool) -> None:
        bridge, self._bridge, self._awaiting_reply = self._bridge, None, False
        if bridge is None:
            return
        if orderly:
            bridge.close()
        else:
            bridge.end()

    # ---- what happened ------------------------------------------------------------------------------
    def _clear_episode(self) -> None:
        self.steps = 0
        self._sightings: list[Sighting] = []
        self._last_seen: dict[str, tuple[Sighting, int]] = {}
        """Name -> its latest sighting, and the env step of it."""
        self._reached: set[str] = set()
        self._visited_cells: set[tuple[int, int]] = set()
        self._counts: dict[str, int] = {}
        """Item -> how many are in the inventory now; at the start of the episode; at most in it."""
        self._start_counts: dict[str, int] = {}
        self._max_counts: dict[str, int] = {}
        self._origin = (0.0, 0.0, 0.0)
        self._novelty = 0
        self._interrupt = False
        self._last_category = command_category(NOOP)

    def _read_reply(self, reply: dict[str, Any], command: NativeAction) -> None:
        self._reply = reply
        self._last_category = command_category(command)
        self._sightings = sights(reply["place"], reply["rays"])
        for sighting in self._sightings:
            self._last_seen[sighting.name] = (sighting, self.steps)
        counts: dict[str, int] = {}
        for _, name, count, _ in reply["inventory"]:
            counts[name] = counts.get(name, 0) + count
        self._counts = counts
        if self.steps:
            self._record_progress(counts)
        if self._embedding is not None:
            self._embedding.add(self.pixels())

    def _record_progress(self, counts: dict[str, int]) -> None:
        """Add to the milestones reached, and to the novelty of new inventory maxima and new cells."""
        for name, count in counts.items():
            if count > self._max_counts.get(name, 0):
                self._max_counts[name] = count
                self._novelty += 1
            gained = count - self._start_counts.get(name, 0)
            if gained > 0:
                self._reached.add(name)
            for milestone, (needed, item) in self._counted_milestones.items():
                if item == name and gained >= needed:
                    self._reached.add(milestone)
        for flag, name in zip(self._reply["near"], ("near_table", "near_furnace"), strict=True):
            if flag and name not in self._reached:
                self._reached.add(name)
                self._novelty += 1
        if self.succeeded():
            self._reached.add(self.task.milestones[-1])
        cell = (math.floor(self._reply["place"][0]), math.floor(self._reply["place"][2]))
        if cell not in self._visited_cells:
            self._visited_cells.add(cell)
            self._novelty += 1

    def _hostile_near(self) -> bool:
        return any(sighting.name in HOSTILE and sighting.distance < DANGER_DISTANCE for sighting in self._sightings)

    def succeeded(self) -> bool:
        if self._client_task.goal == "near_table":
            return bool(self._reply["near"][0])
        if self._client_task.goal == "near_furnace":
            return bool(self._reply["near"][1])
        if self._client_task.goal == "milestone":
            return self.task.milestones[-1] in self._reached
        if self.task.kind == "survive":  # the client's own test wants 100 days of the game, 2.4 million env steps
            return bool(self.steps >= self.task.horizon and self._reply["alive"])
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
        return next((sighting.distance for sighting in self._sightings if sighting.name == target), None)

    # ---- what the policy, the code and the operator see ---------------------------------------------
    def observe(self) -> NDArray[np.float32]:
        reading = GameReading(
            self._reply, self._sightings, self._last_seen, self._client_task.target, self.steps, self.task.horizon,
            self._origin, self._last_category,
        )  # fmt: skip
        values: list[float] = []
        for name in self._features:
            if name == "mineclip":
                assert self._embedding is not None
                values.extend(self._embedding.vector().tolist())
            else:
                values.extend(rows.ROWS[name](reading))
        return np.asarray(values, dtype=np.float32)

    def pixels(self) -> NDArray[np.uint8]:
        """Raises `MineDojoError` unless the env was made with pixels."""
        if not self._pixels:
            raise MineDojoError("order", "This environment was made without pixels.")
        height, width = self._settings.image_size
        return np.frombuffer(self._reply["rgb"], np.uint8).reshape(height, width, 3)

    def action_masks(self) -> NDArray[np.bool_]:
        """(15,) all True: the 12 + 3 actions of the policy's heads need neither a slot nor an ingredient."""
        return np.ones(15, dtype=np.bool_)

    def view(self, whole: bool) -> bytes:
        """Always whole, so `whole` changes nothing: a view of Minecraft is about 3 kB with its memories."""
        reply = self._reply
        x, y, z, yaw, pitch, biome, light = reply["place"][:7]
        equip, place, _, craft = (np.unpackbits(np.frombuffer(mask, np.uint8)) for mask in reply["masks"])
        names_in_sight = {sighting.name for sighting in self._sightings}
        return json.dumps({
            "step": self.steps, "time_left": max(0, self.task.horizon - self.steps),
            "health": reply["life"][0], "food": reply["life"][1], "armor": reply["life"][2],
            "oxygen": reply["life"][3], "x": round(x, 3), "y": round(y, 3), "z": round(z, 3),
            "yaw": round(yaw, 2), "pitch": round(pitch, 2), "biome": biome, "light": light,
            "slots": [entry[:3] for entry in reply["inventory"]], "holding": reply["equipment"][0],
            "near_table": bool(reply["near"][0]), "near_furnace": bool(reply["near"][1]),
            "sights": [self._sight(sighting, 0) for sighting in self._sightings],
            "memories": [
                self._sight(sighting, self.steps - step)
                for name, (sighting, step) in self._last_seen.items() if name not in names_in_sight
            ],
            "voxels": [block_name(name) for name in reply["voxels"]],
            "craftable": [CRAFT_ITEMS[i] for i in np.flatnonzero(craft[:244])],
            "equippable": np.flatnonzero(equip[:36]).tolist(), "placeable": np.flatnonzero(place[:36]).tolist(),
            "refused": reply["refused"],
        }, separators=(",", ":")).encode()  # fmt: skip

    def _sight(self, sighting: Sighting, age: int) -> list[Any]:
        turn, tilt, distance = bearing(self._reply["place"], sighting.x, sighting.y, sighting.z)
        if age == 0:
            distance = sighting.distance
        return [sighting.name, sighting.is_animal, round(distance, 2), round(turn, 1), round(tilt, 1), age]

    def frame(self) -> bytes:
        """A small JPEG of the game's own frame with its caption; empty when the game has just been lost."""
        if self._bridge is None:
            return b""
        try:
            reply = self._bridge.ask("jpeg", self._settings.step_timeout, width=FRAME_WIDTH, quality=FRAME_QUALITY)
        except MineDojoError as error:
            self._handle_fault(error)
            return b""
        return captioned(bytes(reply["jpeg"]), caption(self._reply))

    def save(self) -> bytes:
        raise MineDojoError("order", "Minecraft's state cannot be saved exactly; this world is not restorable.")

    def restore(self, state: bytes) -> None:
        raise MineDojoError("order", "Minecraft's state cannot be restored; this world is not restorable.")
