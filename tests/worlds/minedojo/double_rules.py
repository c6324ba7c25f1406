"""The rules of the game's double: animals that walk, tools, a table and crafting, on the ground of `double_ground`.

A cow and a sheep spawn 5 to 20 blocks off at random bearings; one can approach, aim, strike, milk and shear
them, fell trees, place a table and craft. One tick is 50 ms, with Minecraft's walking speed, reach and breaking
times. It is not Minecraft and is never offered as a world: what is learnt here proves the machinery only.
"""

from __future__ import annotations

import math
import random
import re

from double_ground import GROUND, Block, Ground, Vector, look

REACH_BLOCK, REACH_ENTITY = 4.5, 3.0
WALK, SPRINT, SNEAK = 0.216, 0.281, 0.065
EYE, TALL, HALF = 1.62, 1.8, 0.3
SHY_DISTANCE, SHY_CHANCE = 3.2, 0.15
BOXES = {"cow": (0.45, 1.4), "sheep": (0.45, 1.3), "pig": (0.45, 0.9), "chicken": (0.2, 0.7),
         "zombie": (0.3, 1.95), "item": (0.125, 0.25)}  # fmt: skip
CLASSES = {"cow": "EntityCow", "sheep": "EntitySheep", "pig": "EntityPig", "chicken": "EntityChicken",
           "zombie": "EntityZombie", "item": "EntityItem"}  # fmt: skip
HEALTH = {"cow": 10, "pig": 10, "sheep": 8, "chicken": 4, "zombie": 20}
LOOT = {"cow": ("beef", "leather"), "sheep": ("mutton", "wool"), "pig": ("porkchop",), "chicken": ("feather",),
        "zombie": ("rotten_flesh",)}  # fmt: skip
NAMES = {"log": "wood", "grass": "grass block", "leaves": "leaves", "dirt": "dirt", "stone": "stone",
         "crafting_table": "crafting table", "furnace": "furnace", "planks": "wooden planks",
         "cobblestone": "cobblestone"}  # fmt: skip
DROPS = {"log": "log", "grass": "dirt", "dirt": "dirt", "stone": "cobblestone", "leaves": None,
         "crafting_table": "crafting_table", "furnace": "furnace", "planks": "planks",
         "cobblestone": "cobblestone"}  # fmt: skip
HARD = {"log": 2.0, "grass": 0.6, "dirt": 0.5, "stone": 1.5, "leaves": 0.2, "crafting_table": 2.5,
        "furnace": 3.5, "planks": 2.0, "cobblestone": 2.0}  # fmt: skip
NEEDS_PICKAXE = {"stone", "cobblestone", "furnace"}
RIGHT_TOOL = {"log": "axe", "planks": "axe", "crafting_table": "axe", "stone": "pickaxe", "cobblestone": "pickaxe",
              "furnace": "pickaxe", "dirt": "shovel", "grass": "shovel"}  # fmt: skip
TIERS = {"wooden": 2, "stone": 4, "iron": 6, "diamond": 8, "golden": 12}
DAMAGE = {"wooden_sword": 4, "stone_sword": 5, "iron_sword": 6, "diamond_sword": 7}
HAND = {"planks": ({"log": 1}, 4), "stick": ({"planks": 2}, 4), "crafting_table": ({"planks": 4}, 1),
        "shears": ({"iron_ingot": 2}, 1), "torch": ({"coal": 1, "stick": 1}, 4)}  # fmt: skip
TABLE = {"wooden_pickaxe": ({"planks": 3, "stick": 2}, 1), "stone_pickaxe": ({"cobblestone": 3, "stick": 2}, 1),
         "furnace": ({"cobblestone": 8}, 1), "bucket": ({"iron_ingot": 3}, 1), "chest": ({"planks": 8}, 1),
         "wooden_sword": ({"planks": 2, "stick": 1}, 1), "wooden_axe": ({"planks": 3, "stick": 2}, 1),
         "bed": ({"planks": 3, "wool": 3}, 1)}  # fmt: skip
SMELT = {"cooked_beef": ({"beef": 1}, 1), "cooked_mutton": ({"mutton": 1}, 1)}
SLOTS = {"slot.weapon.mainhand": 0, "slot.weapon.offhand": 40, "slot.armor.feet": 36, "slot.armor.legs": 37,
         "slot.armor.chest": 38, "slot.armor.head": 39}  # fmt: skip
ARMOR = {"leather": (1, 2, 3, 1), "iron": (2, 5, 6, 2), "diamond": (3, 6, 8, 3)}


class Animal:
    def __init__(self, kind: str, x: float, z: float, rng: random.Random) -> None:
        self.kind, self.x, self.z, self.rng = kind, x, z, rng
        self.y = float(GROUND)
        self.health = HEALTH.get(kind, 5)
        self.heading, self.walking, self.hurt, self.panic, self.cooldown = rng.uniform(0, 360), 0, 0, 0, 0
        self.wool = kind == "sheep"
        self.item = ""
        self.summoned = False


class World:
    """One small world and its player; `tick` advances it by 50 ms."""

    def __init__(self, seed: int, biome: int = 1) -> None:
        self.ground = Ground(seed, biome)
        self.rng = random.Random(seed)
        self.animals: list[Animal] = []
        self.time, self.stopped = 6000, False
        self.kills: dict[str, int] = {}
        self.used: dict[str, int] = {}
        self.start: dict[int, tuple[str, int]] = {}
        self.born()
        self.herd()

    # ---- player -------------------------------------------------------------------------------------
    def born(self) -> None:
        self.x, self.y, self.z, self.vy = 2.5, float(GROUND), 2.5, 0.0
        self.yaw, self.pitch = self.rng.uniform(-180, 180), 0.0
        self.health, self.food, self.alive = 20.0, 20, True
        self.bag: list[tuple[str, int] | None] = [None] * 41
        self.breaking: tuple[Block, float] | None = None
        self.use_delay = 0
        self.crosshair: Animal | None = None
        """What a right click acts on: what the last frame had under the crosshair."""
        for slot, (name, count) in self.start.items():
            self.bag[slot] = (name, count)

    def herd(self) -> None:
        """A cow and a sheep, 5 to 20 blocks off at random bearings."""
        for kind in ("cow", "sheep"):
            self.spawn(kind, self.rng.uniform(5, 20))

    def spawn(self, kind: str, far: float) -> None:
        for _ in range(50):
            angle = self.rng.uniform(0, 2 * math.pi)
            x, z = self.x + far * math.cos(angle), self.z + far * math.sin(angle)
            if not self.ground.solid_at(x, z, 0.5):
                break
        self.animals.append(Animal(kind, x, z, self.rng))

    def summon(self, kind: str, dx: float, dz: float) -> None:
        """In the direction asked for, but 5 to 20 blocks off (0 to 14 asked), and instead of the herd's own."""
        if kind not in HEALTH:
            return
        self.animals = [a for a in self.animals if a.kind != kind or a.summoned]
        far, angle = 5 + 15 * min(1.0, (dx * dx + dz * dz) / 200), math.atan2(dz, dx)
        while self.ground.solid_at(self.x + far * math.cos(angle), self.z + far * math.sin(angle), 0.5):
            angle += 0.1
        animal = Animal(kind, self.x + far * math.cos(angle), self.z + far * math.sin(angle), self.rng)
        animal.summoned = True
        self.animals.append(animal)

    def eye(self) -> Vector:
        return self.x, self.y + EYE, self.z

    def meet(self, origin: Vector, ray: Vector, far: float) -> tuple[Animal, float] | None:
        """Nearest entity on a unit ray within `far`: box against ray, slab by slab."""
        best: tuple[Animal, float] | None = None
        for animal in self.animals:
            half, tall = BOXES[animal.kind]
            if math.hypot(animal.x - origin[0], animal.z - origin[2]) - 2 > far:
                continue
            low, high = 0.0, far if best is None else best[1]
            lows = (animal.x - half, animal.y, animal.z - half)
            highs = (animal.x + half, animal.y + tall, animal.z + half)
            for i in range(3):
                if abs(ray[i]) < 1e-9:
                    if not lows[i] <= origin[i] <= highs[i]:
                        break
                    continue
                a, b = (lows[i] - origin[i]) / ray[i], (highs[i] - origin[i]) / ray[i]
                low, high = max(low, min(a, b)), min(high, max(a, b))
                if low > high:
                    break
            else:
                best = (animal, low)
        return best

    def target(self) -> tuple[Animal | None, tuple[Block, float, Block] | None]:
        ray = look(self.yaw, self.pitch)
        block = self.ground.trace(self.eye(), ray, REACH_BLOCK)
        met = self.meet(self.eye(), ray, min(REACH_ENTITY, block[1]) if block else REACH_ENTITY)
        if met is not None and met[0].kind != "item":
            return met[0], None
        return None, block

    def held(self) -> str:
        return self.bag[0][0] if self.bag[0] else "air"

    def give(self, name: str, count: int) -> None:
        for slot in range(36):
            entry = self.bag[slot]
            if entry is not None and entry[0] == name and entry[1] + count <= 64 and "bucket" not in name:
                self.bag[slot] = (name, entry[1] + count)
                return
        for slot in range(36):
            if self.bag[slot] is None:
                self.bag[slot] = (name, count)
                return

    def count(self, name: str) -> int:
        return sum(entry[1] for entry in self.bag[:36] if entry is not None and entry[0] == name)

    def take(self, name: str, count: int) -> None:
        for slot in range(36):
            entry = self.bag[slot]
            if count and entry is not None and entry[0] == name:
                gone = min(count, entry[1])
                count -= gone
                self.bag[slot] = (name, entry[1] - gone) if entry[1] > gone else None

    def near(self, kind: str) -> bool:
        return any(
            name == kind and math.dist((self.x, self.y, self.z), (c[0] + 0.5, c[1], c[2] + 0.5)) <= 4.0
            for c, name in self.ground.placed.items()
        )

    # ---- one tick -----------------------------------------------------------------------------------
    def tick(self, lines: list[str]) -> None:
        wants: dict[str, str] = {}
        for line in lines:
            verb, _, rest = line.partition(" ")
            wants[verb] = rest
        if not self.alive:
            self.born()
        if "chat" in wants:
            self.command(wants["chat"])
        pitch, yaw = (float(v) for v in wants.get("camera", "0 0").split())
        self.yaw = (self.yaw + yaw + 180) % 360 - 180
        self.pitch = max(-90.0, min(90.0, self.pitch + pitch))
        self.move({k for k in ("forward", "back", "left", "right", "jump", "sneak", "sprint") if wants.get(k) == "1"})
        self.attack(wants.get("attack") == "1")
        self.use(wants.get("use") == "1")
        for verb, book, station in (("craft", HAND, ""), ("craftNearby", {**HAND, **TABLE}, "crafting_table"),
                                    ("smeltNearby", SMELT, "furnace")):  # fmt: skip
            if wants.get(verb, "none") != "none" and (not station or self.near(station)):
                self.craft(book, wants[verb])
        if wants.get("equip", "none") != "none":
            self.equip(wants["equip"])
        if wants.get("place", "none") != "none":
            self.place(wants["place"])
        if wants.get("drop") == "1" and self.bag[0]:
            self.take(self.bag[0][0], 1)
        for animal in list(self.animals):
            self.live(animal)
        self.crosshair = self.target()[0]
        if not self.stopped:
            self.time += 1

    def move(self, keys: set[str]) -> None:
        ahead = ("forward" in keys) - ("back" in keys)
        side = ("left" in keys) - ("right" in keys)
        speed = SNEAK if "sneak" in keys else SPRINT if "sprint" in keys and ahead > 0 else WALK
        if ahead or side:
            a = math.radians(self.yaw)
            size = math.hypot(ahead, side)
            dx = (-math.sin(a) * ahead + math.cos(a) * side) * speed / size
            dz = (math.cos(a) * ahead + math.sin(a) * side) * speed / size
            if not self.ground.solid_at(self.x + dx, self.z, HALF, self.y, TALL):
                self.x += dx
            if not self.ground.solid_at(self.x, self.z + dz, HALF, self.y, TALL):
                self.z += dz
        floor = self.ground.block((math.floor(self.x), math.floor(self.y - 0.01), math.floor(self.z)))
        if floor and self.vy <= 0:
            self.vy = 0.42 if "jump" in keys else 0.0
        if self.vy or not floor:
            if self.ground.solid_at(self.x, self.z, HALF, self.y + self.vy, TALL):
                self.y, self.vy = (math.floor(self.y) if self.vy < 0 else self.y), 0.0
            else:
                self.y += self.vy
                self.vy = (self.vy - 0.08) * 0.98
        for animal in self.animals:  # picked up when near
            if animal.kind == "item" and math.dist((self.x, self.z), (animal.x, animal.z)) < 1.4:
                self.give(animal.item, 1)
        self.animals = [a for a in self.animals if not (
            a.kind == "item" and math.dist((self.x, self.z), (a.x, a.z)) < 1.4)]  # fmt: skip

    def attack(self, pressed: bool) -> None:
        if not pressed:
            self.breaking = None
            return
        animal, block = self.target()
        if animal is not None:
            self.breaking = None
            if not animal.hurt:
                animal.health -= DAMAGE.get(self.held(), 1)
                animal.hurt, animal.panic = 10, 60
                animal.heading = math.degrees(math.atan2(-(animal.x - self.x), animal.z - self.z))
                if animal.health <= 0:
                    self.kill(animal)
            return
        if block is None:
            self.breaking = None
            return
        cell, kind = block[0], self.ground.block(block[0])
        tier, _, tool = self.held().partition("_")
        right = tool == RIGHT_TOOL.get(kind, "-")
        speed = TIERS.get(tier, 1) if right else 1
        ticks = 20 * HARD[kind] * (5 if kind in NEEDS_PICKAXE and not right else 1.5) / speed
        done = self.breaking[1] if self.breaking is not None and self.breaking[0] == cell else 0.0
        self.breaking = (cell, done + 1)
        if done + 1 >= ticks:
            self.ground.put(cell, "")
            self.breaking = None
            drop = DROPS[kind]
            if drop and (kind not in NEEDS_PICKAXE or right):
                self.drop(drop, cell[0] + 0.5, cell[2] + 0.5)

    def use(self, pressed: bool) -> None:
        self.use_delay = max(0, self.use_delay - 1)
        if not pressed or self.use_delay:
            return
        self.use_delay = 4
        animal = self.crosshair
        if animal is None:
            return
        if animal.kind == "cow" and self.held() == "bucket":
            count = self.bag[0][1] if self.bag[0] else 0
            self.bag[0] = ("bucket", count - 1) if count > 1 else ("milk_bucket", 1)
            if count > 1:
                self.give("milk_bucket", 1)
            self.used["bucket"] = self.used.get("bucket", 0) + 1
        elif animal.kind == "sheep" and self.held() == "shears" and animal.wool:
            animal.wool = False
            self.used["shears"] = self.used.get("shears", 0) + 1
            for _ in range(self.rng.randint(1, 3)):
                self.drop("wool", animal.x + self.rng.uniform(-0.7, 0.7), animal.z + self.rng.uniform(-0.7, 0.7))

    def craft(self, book: dict[str, tuple[dict[str, int], int]], item: str) -> None:
        if item not in book:
            return
        needs, gives = book[item]
        if all(self.count(name) >= n for name, n in needs.items()):
            for name, n in needs.items():
                self.take(name, n)
            self.give(item, gives)

    def equip(self, item: str) -> None:
        for slot in range(1, 36):
            entry = self.bag[slot]
            if entry is not None and entry[0] == item:
                self.bag[0], self.bag[slot] = self.bag[slot], self.bag[0]
                return

    def place(self, item: str) -> None:
        block = self.ground.trace(self.eye(), look(self.yaw, self.pitch), REACH_BLOCK)
        if block is None or item not in NAMES or not self.count(item):
            return
        x, y, z = block[2]
        clear = abs(x + 0.5 - self.x) > 0.8 or abs(z + 0.5 - self.z) > 0.8 or y >= self.y + TALL
        if clear and not self.ground.block(block[2]):
            self.ground.put(block[2], item)
            self.take(item, 1)

    def kill(self, animal: Animal) -> None:
        self.animals.remove(animal)
        if animal.kind != "item":
            self.kills[animal.kind] = self.kills.get(animal.kind, 0) + 1
            for item in LOOT[animal.kind]:
                self.drop(item, animal.x, animal.z)

    def drop(self, item: str, x: float, z: float) -> None:
        entity = Animal("item", x, z, self.rng)
        entity.item = item
        self.animals.append(entity)

    def live(self, animal: Animal) -> None:
        """Animals stroll about 60% of the time, bolt when hit and are shy: one that has somebody near bolts sooner
        or later. A zombie comes and strikes."""
        if animal.kind == "item":
            return
        animal.hurt = max(0, animal.hurt - 1)
        animal.panic = max(0, animal.panic - 1)
        speed = 0.08
        if animal.kind == "zombie":
            animal.heading = math.degrees(math.atan2(-(self.x - animal.x), self.z - animal.z))
            animal.walking, speed = 1, 0.115
            animal.cooldown = max(0, animal.cooldown - 1)
            if math.dist((self.x, self.z), (animal.x, animal.z)) < 1.2 and not animal.cooldown:
                animal.cooldown = 20
                armor = sum(self.armor())
                self.health -= 3 * (1 - min(20, armor) / 25)
                if self.health <= 0:
                    self.health, self.alive = 0.0, False
        elif animal.panic:
            animal.walking, speed = 1, 0.2
        elif math.dist((self.x, self.z), (animal.x, animal.z)) < SHY_DISTANCE and self.rng.random() < SHY_CHANCE:
            away = math.degrees(math.atan2(-(animal.x - self.x), animal.z - self.z))
            animal.heading, animal.panic = away + self.rng.uniform(-40, 40), 20
        elif animal.walking == 0 and self.rng.random() < 0.02:
            animal.walking, animal.heading = self.rng.randint(30, 90), self.rng.uniform(0, 360)
        if animal.walking:
            if animal.kind != "zombie" and not animal.panic:
                animal.walking -= 1
            dx, _, dz = look(animal.heading, 0)
            x, z = animal.x + dx * speed, animal.z + dz * speed
            if self.ground.solid_at(x, z, BOXES[animal.kind][0]) or math.dist((x, z), (self.x, self.z)) < 0.75:
                animal.heading = self.rng.uniform(0, 360)
            else:
                animal.x, animal.z = x, z

    def armor(self) -> tuple[int, ...]:
        worn = []
        for slot in range(36, 40):
            entry = self.bag[slot]
            worn.append(ARMOR.get(entry[0].split("_")[0], (0, 0, 0, 0))[slot - 36] if entry else 0)
        return tuple(worn)

    # ---- server commands ----------------------------------------------------------------------------
    def command(self, text: str) -> None:
        words = text.split()
        verb, rest = words[0], words[1:]
        if verb == "/kill" and not rest:
            self.start = {}
            self.born()
        elif verb == "/kill":
            items = "type=item" in rest[0]
            self.animals = [a for a in self.animals if (a.kind == "item") != items]
        elif verb == "/spreadplayers":
            reach = float(rest[3])
            for _ in range(50):
                x, z = self.x + self.rng.uniform(-reach, reach), self.z + self.rng.uniform(-reach, reach)
                if not self.ground.solid_at(x, z, HALF, GROUND, TALL):
                    break
            self.x, self.y, self.z = x, float(GROUND), z
            self.herd()
        elif verb == "/replaceitem":
            slot = SLOTS.get(rest[2])
            if slot is None:
                place, number = re.fullmatch(r"slot\.(hotbar|inventory)\.(\d+)", rest[2]).groups()  # type: ignore[union-attr]
                slot = int(number) + (9 if place == "inventory" else 0)
            name = rest[3].removeprefix("minecraft:")
            self.bag[slot] = None if name == "air" else (name, int(rest[4]) if len(rest) > 4 else 1)
        elif verb == "/summon":
            self.summon(
                rest[0].removeprefix("minecraft:"), float(rest[1].lstrip("~") or 0), float(rest[3].lstrip("~") or 0)
            )
        elif verb == "/clear":
            self.bag = [None] * 41
        elif verb == "/tp":
            self.x, self.y, self.z, self.yaw, self.pitch = (float(v) for v in rest[:5])
        elif verb == "/time":
            self.time = int(rest[1])
        elif verb == "/setblock":
            cell = tuple(
                math.floor(v + float(w.lstrip("~") or 0)) for v, w in zip((self.x, self.y, self.z), rest, strict=False)
            )
            self.ground.put((cell[0], cell[1], cell[2]), rest[3])
