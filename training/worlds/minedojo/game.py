"""One MineDojo environment in the bridge child: imports the client, makes the environment, builds the replies.

`child.py` loads it by its path under the interpreter that has MineDojo: so it imports the standard library, numpy and
the client only, nothing from rlgpt, and is valid on Python 3.9.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import struct
import sys
import time
from collections.abc import Mapping
from typing import Any

NOOP = (0, 0, 0, 12, 12, 0, 0, 0)
SLOT_MASKS = {5: "equip", 6: "place", 7: "destroy"}
AIR = ("air", "null", "")
UNUSED_SENSORS = ("rays", "voxels", "equipment", "damage_source")
"""Sensors that the client need not build, because `reply` reads them from the game's own answer, or nothing does."""
EQUIPMENT_SLOTS = (0, 40, 36, 37, 38, 39)
"""Slots of main hand, off hand, feet, legs, chest and head."""


class Refused(Exception):
    """A request that cannot be done; `kind` tells the parent what to do about it."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


def load_client(shim: str) -> Any:
    """Import minedojo, with the gym shim on the path (also of the launch watchdog) where gym is missing."""
    try:
        importlib.import_module("gym")
    except ImportError:
        sys.path.insert(0, shim)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [shim, os.environ.get("PYTHONPATH", "")]))
        importlib.import_module("gym")
    yaml: Any = importlib.import_module("yaml")
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # halves the import: 1.3 MB of YAML
    return importlib.import_module("minedojo")


def stop_copying_statistics(client: Any) -> None:
    """Stop the client from copying 1,819 statistics three times a step.

    Each step parses a fresh JSON object and nothing changes what is inside, so a shallow copy is enough. The
    `full_stats` observation is deleted by the client's own mask wrapper, so it is left empty.
    """
    sim: Any = importlib.import_module("minedojo.sim.sim")
    base: Any = importlib.import_module("minedojo.tasks.meta.base")
    stats = importlib.import_module("minedojo.sim.handlers.agent.observations.mc_base_stats")

    def shallow(value: Any) -> Any:
        return dict(value) if isinstance(value, dict) else value

    sim.deepcopy = shallow
    base.deepcopy = shallow
    stats.ObserveFromFullStats.from_hero = lambda self, raw: {}


def send_messages_whole() -> None:
    """Send each message to the game in one piece; the client sends its length first, which wakes the game twice."""
    sockets: Any = importlib.import_module("minedojo.sim.bridge.utils")
    sockets.send_message = lambda sock, message: sock.sendall(struct.pack("!I", len(message)) + message)


def catalogue(client: Any) -> dict[str, Any]:
    """Everything the client knows about tasks, items and recipes, as plain data."""
    tasks = importlib.import_module("minedojo.tasks")
    mc = importlib.import_module("minedojo.sim.mc_meta.mc")
    hand = mc.ALL_HAND_CRAFT_ITEMS_NN_ACTIONS
    table = mc.ALL_TABLE_CRAFT_ONLY_ITEMS_NN_ACTIONS
    recipes = {}
    for index, item in enumerate(mc.ALL_CRAFT_SMELT_ITEMS):
        source = mc.CRAFTING_RECIPES_BY_OUTPUT if item in hand or item in table else mc.SMELTING_RECIPES_BY_OUTPUT
        recipe = source[item][0]
        near = "" if item in hand else "crafting_table" if item in table else "furnace"
        recipes[item] = {
            "index": index,
            "needs": {name: int(count) for name, count in recipe["ingredients"].items()},
            "gives": int(recipe.get("outputCount", 1)),
            "near": near,
        }
    return {
        "tasks": {
            task: {
                "prompt": str(info["prompt"]),
                "guidance": str(info["guidance"] or ""),
                "category": str(info["category"]),
                "spec": plain(tasks.ALL_TASKS_SPECS.get(task, {})),
            }
            for task, info in tasks.P_TASKS_PROMPTS_GUIDANCE.items()
        },
        "recipes": recipes,
        "items": list(mc.ALL_ITEMS),
        "placeable": [name.replace(" ", "_") for name in mc.PLACEABLE_ITEM_NAMES],
        "biomes": dict(mc.BIOMES_MAP),
    }


def plain(value: Any) -> Any:
    """Mappings, sequences and scalars of the client's configuration as msgpack types."""
    if isinstance(value, Mapping) or hasattr(value, "items"):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return [plain(part) for part in value]


def by_slot(inventory: Mapping[str, Any]) -> dict[Any, Any]:
    """A start inventory with its slots as the client wants them: numbers, or names such as `mainhand`."""
    return {int(slot) if slot.isdigit() else slot: item for slot, item in inventory.items()}


class RewardTally:
    """A wrapper between the client's action wrapper and its task that sums the rewards of the ticks of one env step.

    The client runs functions 2, 4, 5, 6 and 7 for three ticks each and returns the reward of the last tick only.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.clear()

    def clear(self) -> None:
        self.reward, self.ended, self.ticks = 0.0, False, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def step(self, action: Any) -> Any:
        observation, reward, done, info = self.env.step(action)
        self.reward += float(reward)
        self.ended = self.ended or bool(done)
        self.ticks += 1
        return observation, reward, done, info


class Game:
    """One task of the client and its game process."""

    def __init__(self, client: Any, numpy: Any, options: dict[str, Any]) -> None:
        self.client = client
        self.numpy = numpy
        self.options = options
        self.pixels = bool(options.get("pixels"))
        self.env: Any = None
        self.observation: dict[str, Any] = {}
        self._make()

    def _make(self) -> None:
        options = self.options
        tasks = importlib.import_module("minedojo.tasks")
        task, arguments = options["task"], dict(options.get("arguments") or {})
        extra = {"use_lidar": True, "lidar_rays": [tuple(ray) for ray in options["rays"]], "use_voxel": True}
        extra["image_size"] = tuple(options["image"])
        if "initial_inventory" in arguments:
            item = importlib.import_module("minedojo.sim.inventory").InventoryItem
            inventory = by_slot(arguments["initial_inventory"])
            arguments["initial_inventory"] = [item(slot=slot, **values) for slot, values in inventory.items()]
        client_spec = tasks.ALL_TASKS_SPECS.get(task)
        if client_spec is not None:
            spec = dict(plain(client_spec))
            overlap = [name for name in arguments if name in spec]
            for name in ("use_lidar", "use_voxel", *overlap):  # a repeated keyword is a TypeError there
                spec.pop(name, None)
            if "initial_inventory" in spec:
                spec["initial_inventory"] = by_slot(spec["initial_inventory"])
            tasks.ALL_TASKS_SPECS[task] = spec  # the client pops keys out of it, so it gets a copy
        try:
            self.env = self.client.make(task, **arguments, **extra)
        except (AssertionError, TypeError, ValueError, KeyError) as error:
            raise Refused("task", f"MineDojo cannot make {task!r}: {type(error).__name__}: {error}") from error
        finally:
            if client_spec is not None:
                tasks.ALL_TASKS_SPECS[task] = client_spec
        actions = self._layer("NNActionSpaceWrapper")
        self.tally = RewardTally(actions.env)
        actions.env = self.tally
        self.task = self._layer("MetaTaskBase")
        self.fast = self._layer("FastResetWrapper")
        self.sim = self._layer("MineDojoSim")
        self.stepper = self._layer("ARMasksWrapper")  # inside the delta-inventory wrapper, which nobody reads
        self._voxel_indices = voxel_order(self._sensor("voxels").grid_size)
        if options.get("lean", True):
            for name in UNUSED_SENSORS:
                self._sensor(name).from_hero = lambda raw: None
            self.stepper.observation = CachedMasks(self.stepper.observation)
        if self.fast is not None and options.get("kill_mobs", True):
            self.fast._reset_cmds.insert(0, "/kill @e[type=!player]")
        bridge = self.sim._bridge_env
        bridge.SOCKTIME = float(options.get("socket_timeout", 240.0))
        bridge.step = raising_step(bridge)
        port = options.get("port")
        if port:
            launch = bridge._get_new_instance
            bridge._get_new_instance = lambda: launch(port=int(port))

    def _layer(self, name: str) -> Any:
        env = self.env
        while env is not None:
            if any(kind.__name__ == name for kind in type(env).__mro__):
                return env
            env = env.__dict__.get("env")
        return None

    def _sensor(self, name: str) -> Any:
        """The client's handler of one part of the observation."""
        return next(handler for handler in self.sim._sim_spec.observables if handler.to_string() == name)

    def reset(self, seed: int) -> dict[str, Any]:
        for layer in (self.task, self.tally.env):
            space = getattr(layer, "__dict__", {}).get("_mob_spawn_range_space")
            if space is not None:
                space.seed(seed % 2**31)
        self.tally.clear()
        try:
            self.observation = self.stepper.reset()
            return self.reply()
        except MemoryError:
            raise
        except Exception as error:  # what the client raises depends on what it found in the game's answer
            raise Refused("game", game_sentence("reset", error)) from error

    def step(self, command: list[int]) -> dict[str, Any]:
        np = self.numpy
        self.tally.clear()
        refused = self._illegal(command)
        if refused:
            command = [*command[:5], 0, 0, 0]
        try:
            self.observation, _, done, _ = self.stepper.step(np.asarray(command, dtype=np.int64))
            return self.reply(refused, bool(done))
        except MemoryError:
            raise
        except Exception as error:  # as above
            raise Refused("game", game_sentence("step", error)) from error

    def _illegal(self, command: list[int]) -> str:
        """Why this command must not reach the client (it would raise on an empty slot), or ''."""
        function, slot = command[5], command[7]
        masks = self.observation["masks"]
        if function in SLOT_MASKS and not masks[SLOT_MASKS[function]][slot]:
            return f"{SLOT_MASKS[function]} of slot {slot} is not possible now"
        if function == 4 and not masks["craft_smelt"][command[6]]:
            return f"craft item {command[6]} lacks ingredients or its table or furnace"
        return ""

    def reply(self, refused: str = "", done: bool = False) -> dict[str, Any]:
        """One observation as plain data; only what a policy, a view or the console can use."""
        np, seen, raw = self.numpy, self.observation, self.sim.prev_info
        slots = [entry["name"] for entry in raw["inventory"] if entry["inventory"] == "inventory"]
        life, place, bag = seen["life_stats"], seen["location_stats"], seen["inventory"]
        names, counts = bag["name"].tolist(), bag["quantity"].tolist()
        worn = bag["cur_durability"].tolist()
        masks = seen["masks"]
        return {
            "reward": self.tally.reward,
            "ended": bool(self.tally.ended or done),
            "success": bool(getattr(self.task, "is_successful", False)),
            "alive": float(life["life"][0]) > 0 and bool(raw.get("is_alive", True)),
            "ticks": self.tally.ticks,
            "refused": refused,
            "inventory": [
                [slot, name.replace(" ", "_"), int(counts[slot]), int(worn[slot])]
                for slot, name in enumerate(names)
                if name != "air"
            ],
            "equipment": [slots[slot] for slot in EQUIPMENT_SLOTS],
            "life": [
                float(life["life"][0]),
                float(life["food"][0]),
                float(life["armor"][0]),
                float(life["oxygen"][0]),
                float(life["saturation"][0]),
                float(life["xp"][0]),
                int(life["is_sleeping"]),
            ],
            "place": [
                *(float(x) for x in place["pos"]),
                float(place["yaw"][0]),
                float(place["pitch"][0]),
                int(place["biome_id"]),
                float(place["light_level"][0]),
                int(place["can_see_sky"]),
                int(place["is_raining"]),
            ],
            "near": [int(seen["nearby_tools"]["table"]), int(seen["nearby_tools"]["furnace"])],
            "voxels": [raw["voxels"][i] for i in self._voxel_indices],
            "rays": rays(raw["rays"]),
            "masks": [np.packbits(masks[n]).tobytes() for n in ("equip", "place", "destroy", "craft_smelt")],
            "rgb": np.ascontiguousarray(seen["rgb"].transpose(1, 2, 0)).tobytes() if self.pixels else b"",
        }

    def jpeg(self, width: int, quality: int) -> bytes:
        cv2 = importlib.import_module("cv2")
        image = self.observation["rgb"].transpose(1, 2, 0)[:, :, ::-1]
        height = max(1, round(image.shape[0] * width / image.shape[1]))
        small = cv2.resize(self.numpy.ascontiguousarray(image), (width, height), interpolation=cv2.INTER_AREA)
        done, encoded = cv2.imencode(".jpg", small, [int(cv2.IMWRITE_JPEG_QUALITY), quality])
        if not done:
            raise Refused("frame", "OpenCV could not encode the frame as JPEG.")
        return bytes(encoded)

    def close(self) -> None:
        if self.env is not None:
            self.sim.close()


def raising_step(bridge: Any) -> Any:
    """The client's `step` for a bridge, which raises ConnectionError when the game is lost. The client itself would
    return the previous observation and `done`."""
    step_client = bridge.step

    def step(actions: Any) -> Any:
        started = time.monotonic()
        result = step_client(actions)
        if not result.step_success:
            waited = time.monotonic() - started
            stalled = waited >= 0.9 * bridge.SOCKTIME
            raise ConnectionError(
                f"no answer for {waited:.0f} s (stalled)" if stalled else "the game closed its connection"
            )
        return result

    return step


class CachedMasks:
    """The client's masks, computed anew only when the inventory or the tools nearby have changed."""

    def __init__(self, add_masks: Any) -> None:
        """`add_masks` is the client's function from an observation to the same with its masks."""
        self.add_masks = add_masks
        self.key: Any = None
        self.masks: Any = None

    def __call__(self, observation: dict[str, Any]) -> dict[str, Any]:
        inventory, tools = observation["inventory"], observation["nearby_tools"]
        near = bool(tools["table"]), bool(tools["furnace"])
        key = (inventory["name"].tobytes(), inventory["quantity"].tobytes(), *near)
        if key != self.key:
            self.masks = self.add_masks(observation)["masks"]
            self.key = key
        observation["masks"] = self.masks
        return observation


def voxel_order(size: list[int]) -> list[int]:
    """Where the names of the blocks lie in the game's list (ten values each, x fastest), x slowest, then y, then z."""
    wide, high, deep = size
    return [10 * (x + wide * (y + high * z)) for x in range(wide) for y in range(high) for z in range(deep)]


def rays(raw: list[Any]) -> list[list[Any]]:
    """The rays that met something: [ray, entity, distance, block, distance, block x, y, z].

    `raw` is the game's list, 16 values a ray. `entity` is '' when a block was met first; a block's distance is -1 when
    the ray met only air.
    """
    met_rays: list[list[Any]] = []
    for start in range(0, len(raw), 16):
        block, block_distance, entity, entity_distance = raw[start], raw[start + 1], raw[start + 9], raw[start + 10]
        air = block in AIR
        if entity != "null":
            name = entity[6:].lower() if entity.startswith("Entity") else entity
            seen_block = ("", -1.0) if air else (block, block_distance)
            met_rays.append([start // 16, name, entity_distance, *seen_block, *raw[start + 13 : start + 16]])
        elif not air:
            met_rays.append([start // 16, "", -1.0, block, block_distance, *raw[start + 13 : start + 16]])
    return met_rays


def game_sentence(operation: str, error: BaseException) -> str:
    text = str(error)
    if isinstance(error, ConnectionRefusedError):
        return f"No game answers on its port during {operation} (connection refused)."
    if isinstance(error, EOFError):
        lines = [line.strip() for line in text.splitlines() if line.strip() and "finished unexpectedly" not in line]
        last = f" its last line was: {lines[-1][:200]}" if lines else " it said nothing"
        return f"Minecraft ended before it was ready;{last} (`rlgpt doctor` says what the game lacks)."
    if "No Malmo mod utilizing the port" in text:
        return "No Minecraft with Malmo listens on the given port."
    if isinstance(error, FileNotFoundError):
        return f"The game cannot be started: {error}."
    if isinstance(error, (LookupError, ValueError, ArithmeticError, AssertionError)):
        return f"The game sent an observation in {operation} that cannot be read: {type(error).__name__}: {text[:200]}"
    return f"The game was lost during {operation}: {type(error).__name__}: {text[:200]}"
