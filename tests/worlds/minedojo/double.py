"""A double of the game for tests: the Malmo socket protocol around `double_rules`, so the real client runs.

    python double.py --port 0 [--seed N] [--stats full|few] [--die-after N] [--stall-after N] [--spoil FIELD=JSON@N]

Stdlib only. It prints the two lines the client's launcher waits for. Every observation has the layout the game's
Java side writes (41 inventory entries, 10 values per voxel, 16 per ray, 1,819 statistics unless `--stats few`,
frames bottom-up RGB). `--die-after` ends the process, `--stall-after` stops answering, at that step; `--spoil` puts
a value (NaN and Infinity are JSON to Java and Python) in place of a field of that step's observation, once, or takes
the field away where none is given.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from double_ground import look, turned
from double_rules import CLASSES, NAMES, World

SKY, GRASS = bytes((120, 167, 255)), bytes((88, 140, 60))
PAINT = {"cow": (70, 50, 40), "sheep": (230, 230, 230), "pig": (240, 160, 160), "zombie": (60, 110, 70),
         "chicken": (250, 250, 250), "item": (200, 60, 60)}  # fmt: skip
DURABLE = {"shears": 238, "diamond_sword": 1561, "iron_sword": 250, "diamond_axe": 1561, "wooden_pickaxe": 59}


class Session:
    """The world of one game process and the mission it runs."""

    def __init__(self, seed: int, stats: list[list[str]], die_after: int, stall_after: int, spoil: str = "") -> None:
        self.world = World(seed)
        self.seed, self.missions = seed, 0
        self.stats, self.die_after, self.stall_after = stats, die_after, stall_after
        field, _, rest = spoil.partition("=")
        self.field, (self.value, _, at) = field, rest.rpartition("@")
        self.spoilt_at = int(at) if at else 0
        self.rays: list[tuple[float, float, float]] = []
        self.grid = ((-1, 1), (-1, 1), (-1, 1))
        self.size = (160, 256)
        self.steps = 0
        self.still = False
        """Answer every step with the first observation, for benchmarks of the client."""
        self._kept: tuple[bytes, bytes] | None = None

    def answer(self) -> tuple[bytes, bytes]:
        """Frame and observation of this moment."""
        if self.still and self._kept is not None:
            return self._kept
        self._kept = (self.frame(), self.info().encode())
        return self._kept

    def begin(self, mission: str) -> None:
        """A new mission is a new world with the inventory and sensors that its XML asks for."""
        self.missions += 1
        biome = re.search(r'<BiomeGenerator[^>]*biome="(\d+)"', mission)
        self.world = World(self.seed * 1009 + self.missions, int(biome[1]) if biome else 1)
        inventory = re.findall(r'<InventoryObject\s+slot="(\d+)"\s+type="(\w+)"[^>]*?quantity="(\d+)"', mission)
        self.world.start = {int(slot): (kind, int(count)) for slot, kind, count in inventory}
        self.world.born()
        ray = r'<RayOffset\s+pitch="([^"]+)"\s+yaw="([^"]+)"\s+distance="([^"]+)"'
        self.rays = [(float(p), float(y), float(d)) for p, y, d in re.findall(ray, mission)]
        bounds = re.search(
            r'<min x="(-?\d+)" y="(-?\d+)" z="(-?\d+)"\s*/>\s*<max x="(-?\d+)" y="(-?\d+)" z="(-?\d+)"', mission
        )
        if bounds:
            low_high = [int(v) for v in bounds.groups()]
            self.grid = tuple(zip(low_high[:3], low_high[3:], strict=True))  # type: ignore[assignment]
        width, height = re.search(r"<Width>\s*(\d+)", mission), re.search(r"<Height>\s*(\d+)", mission)
        if width and height:
            self.size = (int(height[1]), int(width[1]))

    def step(self, lines: list[str]) -> None:
        self.steps += 1
        if self.steps == self.die_after:
            print("Exception: the double was told to die here", flush=True)
            os._exit(1)
        if self.steps == self.stall_after:
            time.sleep(3600)
        self.world.tick(lines)

    def info(self) -> str:
        world = self.world
        dark = 18000 <= world.time % 24000 <= 22500 or world.time % 24000 >= 13000
        seen: dict[str, Any] = {
            "life": world.health, "armor": sum(world.armor()), "food": world.food, "saturation": 5.0, "xp": 0,
            "is_alive": world.alive, "air": 300, "is_sleeping": False, "xpos": world.x, "ypos": world.y,
            "zpos": world.z, "pitch": world.pitch, "yaw": world.yaw, "biome_name": "Plains",
            "biome_id": world.ground.biome, "biome_temperature": 0.8, "biome_rainfall": 0.4, "sea_level": 63,
            "light_level": 4 if dark else 15,
            "sky_light_level": 0.2 if dark else 1.0, "sun_brightness": 0.2 if dark else 1.0, "can_see_sky": True,
            "is_raining": False, "nearby_crafting_table": world.near("crafting_table"),
            "nearby_furnace": world.near("furnace"), "inventory": self.inventory(), "voxels": self.voxels(),
            "rays": self.lidar(),
        }  # fmt: skip
        for keys in self.stats:
            node = seen
            for key in keys[:-1]:
                node = node.setdefault(key, {})
            node[keys[-1]] = 0
        for kind, count in world.kills.items():
            seen["stat"]["kill_entity"][kind] = count
        for item, count in world.used.items():
            seen["stat"]["use_item"]["minecraft"][item] = count
        if self.spoilt_at and self.steps >= self.spoilt_at:
            self.spoilt_at = 0
            if self.value:
                seen[self.field] = json.loads(self.value)
            else:
                del seen[self.field]
        return json.dumps(seen)

    def inventory(self) -> list[dict[str, Any]]:
        out = []
        for slot, entry in enumerate(self.world.bag):
            name, count = entry if entry is not None else ("air", 0)
            worn = DURABLE.get(name, 0)
            out.append({"inventory": "inventory", "slot": slot, "name": name, "variant": 0, "quantity": count,
                        "max_durability": worn, "cur_durability": worn})  # fmt: skip
        return out

    def voxels(self) -> list[Any]:
        """Ten values per cell, x fastest (the order in which the game writes its grid)."""
        world = self.world
        ahead = look(world.yaw, world.pitch)
        bx, by, bz = math.floor(world.x), math.floor(world.y), math.floor(world.z)
        (x0, x1), (y0, y1), (z0, z1) = self.grid
        out: list[Any] = []
        for dz in range(z0, z1 + 1):
            for dy in range(y0, y1 + 1):
                for dx in range(x0, x1 + 1):
                    kind = world.ground.block((bx + dx, by + dy, bz + dz))
                    size = math.sqrt(dx * dx + dy * dy + dz * dz) or 1.0
                    angle = (dx * ahead[0] + dy * ahead[1] + dz * ahead[2]) / size
                    solid = bool(kind)
                    out += [NAMES.get(kind, "air"), 0, solid, True, solid, False, solid, kind == "log", solid, angle]
        return out

    def lidar(self) -> list[Any]:
        """Sixteen values per ray; a ray that meets nothing reports the air block at its end."""
        world = self.world
        eye, ahead = world.eye(), look(world.yaw, world.pitch)
        out: list[Any] = []
        for pitch, yaw, far in self.rays:
            ray = turned(ahead, pitch, yaw)
            block = world.ground.trace(eye, ray, far)
            met = world.meet(eye, ray, block[1] if block else far)
            if block is None:
                kind, distance = "air", far
                cell = tuple(math.floor(o + r * far) for o, r in zip(eye, ray, strict=True))
            else:
                kind, distance, cell = NAMES[world.ground.block(block[0])], block[1], block[0]
            solid = block is not None
            entity, near = (CLASSES[met[0].kind], met[1]) if met else ("null", distance)
            out += [kind, distance, 0, -1, True, solid, False, solid, kind == "wood", entity, near, pitch, yaw, *cell]
        return out

    def frame(self) -> bytes:
        """Bottom-up RGB: sky, ground, and a coloured box per animal within 24 blocks."""
        world, (height, width) = self.world, self.size
        horizon = max(0, min(height, round(height / 2 - world.pitch / 70 * height)))
        canvas = bytearray(GRASS * width * (height - horizon) + SKY * width * horizon)
        for animal in sorted(world.animals, key=lambda a: -math.dist((a.x, a.z), (world.x, world.z))):
            away = max(0.5, math.dist((animal.x, animal.z), (world.x, world.z)))
            bearing = math.degrees(math.atan2(-(animal.x - world.x), animal.z - world.z)) - world.yaw
            bearing = (bearing + 180) % 360 - 180
            if away > 24 or abs(bearing) > 50:
                continue
            half = max(1, int(width * 0.4 / away))
            middle = int(width * (0.5 + bearing / 100))
            left, right = max(0, middle - half), min(width, middle + half)
            foot = int(height - horizon - height * 1.2 / away)
            paint = bytes(PAINT[animal.kind]) * max(0, right - left)
            for row in range(max(0, foot), min(height, foot + max(2, int(height * 1.1 / away)))):
                canvas[(row * width + left) * 3 : (row * width + left) * 3 + len(paint)] = paint
        return bytes(canvas)


def receive(sock: socket.socket, limit: int = 1 << 31) -> bytes:
    head = b""
    while len(head) < 4:
        part = sock.recv(4 - len(head))
        if not part:
            raise ConnectionError("the client left")
        head += part
    (size,) = struct.unpack("!I", head)
    if size > limit:
        raise ConnectionError("the greeting is no greeting of the client")
    body = bytearray()
    while len(body) < size:
        part = sock.recv(size - len(body))
        if not part:
            raise ConnectionError("the client left in the middle of a message")
        body += part
    return bytes(body)


def send(sock: socket.socket, *messages: bytes) -> None:
    sock.sendall(b"".join(struct.pack("!I", len(m)) + m for m in messages))


def converse(sock: socket.socket, session: Session) -> None:
    """One connection of the client, to its end."""
    if not receive(sock, len("<MalmoEnv") + 8).startswith(b"<MalmoEnv0.37.0"):
        return
    one = struct.pack("!I", 1)
    while True:
        message = receive(sock).decode()
        if message.startswith("<Step"):
            if message.startswith("<StepServer"):
                continue
            body = message[message.index(">") + 1 : message.rindex("</StepClient")]
            session.step(body.split("\n"))
            frame, info = session.answer()
            send(sock, frame, struct.pack("!dbb", 0.0, 0, 1), info)
        elif message.startswith("<Peek"):
            frame, info = session.answer()
            send(sock, frame, info, struct.pack("!b", 0))
        elif message.startswith("<MissionInit"):
            receive(sock)  # the token: uid:role:reset:agents:synchronous
            session.begin(message)
            send(sock, one)
        elif message.startswith("<Quit"):
            send(sock, one)
        elif message.startswith("<Exit"):
            send(sock, one)
            os._exit(0)
        elif message.startswith("<Disconnect"):
            return


def serve(listener: socket.socket, session: Session) -> None:
    while True:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def talk(sock: socket.socket = sock) -> None:
            with sock:
                try:
                    converse(sock, session)
                except OSError:
                    return

        threading.Thread(target=talk, daemon=True).start()


def statistics(kind: str, constants: str) -> list[list[str]]:
    """Key paths of the statistics: all that the client's own table names, or the few that tasks read."""
    if kind == "full":
        return [stat["minerl_keys"] for stat in json.loads(Path(constants).read_text())["stats"]]
    few = [["stat", "kill_entity", name] for name in ("cow", "sheep", "pig", "chicken", "zombie")]
    few += [["stat", "use_item", "minecraft", name] for name in ("bucket", "shears", "wooden_pickaxe")]
    return [*few, ["stat", "time_since_death"]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-port", "--port", type=int, default=0)
    parser.add_argument("-seed", "--seed", default="1")
    parser.add_argument("--stats", choices=["full", "few"], default="few")
    parser.add_argument("--constants", default="", help="the client's mc_constants.json, for --stats full")
    parser.add_argument("--die-after", type=int, default=0)
    parser.add_argument("--stall-after", type=int, default=0)
    parser.add_argument("--spoil", default="", help="FIELD=JSON@STEP")
    parser.add_argument("--still", action="store_true", help="answer every step with the first observation")
    parser.add_argument("-env", action="store_true")
    parser.add_argument("-replaceable", action="store_true")
    parser.add_argument("-runDir", default="")
    options = parser.parse_args()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", options.port))
    except OSError:  # like Malmo: a taken port is replaced by a free one, and said
        listener.bind(("127.0.0.1", 0))
    listener.listen(8)
    seed = int(options.seed) if options.seed.isdigit() else 1
    told = statistics(options.stats, options.constants)
    session = Session(seed, told, options.die_after, options.stall_after, options.spoil)
    session.still = options.still
    print(f"***** Start MalmoEnvServer on port {listener.getsockname()[1]}", flush=True)
    print("CLIENT enter state: DORMANT", flush=True)
    serve(listener, session)


if __name__ == "__main__":
    main()
