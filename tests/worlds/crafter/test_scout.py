"""`scout` against a search of its own, cell by cell, and the counts on bit boards that it rests on."""

import random

import pytest

from rlgpt.training.worlds.crafter import counting, host_side, layout, names
from rlgpt.training.worlds.crafter.ground import add
from rlgpt.training.worlds.crafter.library import LIBRARY
from tests.worlds.crafter.play import world
from tests.worlds.crafter.test_host_side import view_of, wander

scout = LIBRARY["scout"]
MOUNTAIN = ("stone", "coal", "iron", "path")
WALKABLE = ("grass", "sand", "path")
MINED = {"stone": "wood_pickaxe", "coal": "wood_pickaxe", "iron": "stone_pickaxe", "diamond": "iron_pickaxe"}
ROW = names.MEMORY_WIDTH


def bit(x, y):
    return 1 << (y + names.REACH_Y) * ROW + x + names.REACH_X


def number_at(numbers, x, y):
    return sum(1 << place for place, bits in enumerate(numbers) if bits & bit(x, y))


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_cells_in_a_window_are_counted(share):
    rng = random.Random(round(share * 100))
    area = range(names.AREA)
    chosen = {(x, y) for x in area for y in area if rng.random() < share}
    counts = counting.count_in_windows(sum(bit(x, y) for x, y in chosen))
    for x in area:
        for y in area:
            around = sum((x + dx, y + dy) in chosen for dx in range(-4, 5) for dy in range(-3, 4))
            assert number_at(counts, x, y) == around


def test_numbers_on_boards_add_up_and_are_compared():
    rng = random.Random(5)
    first, second = ({(x, 9): rng.randrange(100) for x in range(64)} for _ in range(2))
    boards = [
        [sum(bit(*cell) for cell, n in numbers.items() if n >> place & 1) for place in range(7)]
        for numbers in (first, second)
    ]
    total = counting.add(boards[0], counting.times_power_of_two(boards[1], 2))
    sums = {cell: first[cell] + 4 * second[cell] for cell in first}
    assert all(number_at(total, *cell) == value for cell, value in sums.items())
    some = rng.sample(sorted(sums), 20)
    best = max(sums[cell] for cell in some)
    assert counting.highest(total, sum(bit(*cell) for cell in some)) == (
        best, sum(bit(*cell) for cell in some if sums[cell] == best)
    )  # fmt: skip


class Slow:
    """The same rules as `scout`, a cell at a time."""

    def __init__(self, view, wanted, dig):
        self.view, self.wanted = view, wanted
        x, y = self.here = view.position
        self.known = {(i, j): view.material(i - x, j - y) for i in range(64) for j in range(64)}
        self.known = {cell: name for cell, name in self.known.items() if name != "unknown"}
        taken = {(x + dx, y + dy) for _, dx, dy in view.objects}
        plants = {(x + dx, y + dy) for name, dx, dy in view.objects if name in ("sapling", "ripe_plant")}
        mined = [name for name, tool in MINED.items() if dig and view.inventory[tool]]
        self.cost = {c: 1 for c, name in self.known.items() if name in WALKABLE and c not in taken | plants}
        self.cost |= {c: 2 for c, name in self.known.items() if name in mined}

    def likely(self):
        near = {cell for cell, name in self.known.items() if name in self.wanted}
        other, taken, likely = set(self.known) - near, set(self.known), set()
        for _ in range(5):
            near = {cell for cell in self.beside(near) if cell not in taken}
            taken |= near
            other = {cell for cell in self.beside(other) if cell not in taken}
            taken |= other
            likely |= near
        return likely

    @staticmethod
    def beside(cells):
        for x, y in cells:
            for dx, dy in names.DIRECTIONS:
                if 0 <= x + dx < 64 and 0 <= y + dy < 64:
                    yield x + dx, y + dy

    def first_cells(self):
        """The cells that a shortest way enters first, to one of the places that are worth most for their way."""
        likely = self.likely() if self.wanted else set()
        steps, first, entered = {self.here: 0}, {self.here: set()}, {0: {self.here}}
        for count in range(119):
            for cell in entered.pop(count, ()):
                for beside in self.beside([cell]):
                    arrives = count + self.cost.get(beside, 1000)
                    if arrives < steps.get(beside, 120):
                        steps[beside], first[beside] = arrives, set()
                        entered.setdefault(arrives, set()).add(beside)
                    if arrives == steps.get(beside):
                        first[beside] |= first[cell] or {beside}
        value = {}
        for (x, y), count in steps.items():
            window = [(x + dx, y + dy) for dx in range(-4, 5) for dy in range(-3, 4)]
            window = [c for c in window if c not in self.known and 0 <= c[0] < 64 and 0 <= c[1] < 64]
            value[x, y] = count and sum(9 if cell in likely else 1 for cell in window) / (count + 2)
        best = max(value.values())
        return set().union(*(first[cell] for cell, worth in value.items() if worth == best)) if best else set()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("wanted", "dig"), [((), False), (MOUNTAIN, True), (("water",), False)])
def test_it_goes_where_most_comes_into_sight(seed, wanted, dig):
    _, view = wander(seed, 40 + 10 * seed)
    cells = Slow(view, wanted, dig).first_cells()
    step = scout(view, *wanted, dig=dig)
    if not cells:
        assert step is None
        return
    facing = view.facing if step == "do" else step.removeprefix("move_")
    (x, y), (dx, dy) = view.position, names.DIRECTIONS[names.FACINGS.index(facing)]
    assert (x + dx, y + dy) in cells


def open_ground(pocket, wide, cow=None):
    """All is known grass but a small unseen pocket and a wide unseen field; with a cow on a cell."""
    env = world().make("crafter_score")
    env.reset(3)
    simulation = env._simulation
    simulation.material[:] = layout.GRASS
    simulation.objects[1:] = 0
    simulation.occupant[simulation.occupant > 1] = 0
    if cow:
        add(simulation.state, simulation.occupant, simulation.objects, layout.COW, *cow, 3, 0)
    simulation.look()
    grass = names.MATERIALS.index("grass")
    memory = simulation.memory
    memory[names.REACH_Y : names.REACH_Y + 64, names.REACH_X : names.REACH_X + 64] = grass
    for x, y in (*pocket, *wide):
        memory[y + names.REACH_Y, x + names.REACH_X] = 0
    columns = memory.reshape(-1)
    for plane in range(names.PLANES):
        bits = sum(1 << int(place) for place in (columns >> plane & 1).nonzero()[0])
        simulation.planes[plane] = list(bits.to_bytes(names.PLANE_BYTES, "little"))
    return view_of(env)


def test_it_passes_a_small_corner_by():
    pocket = [(38, 32)]
    wide = [(x, y) for x in range(25) for y in range(20, 45)]
    view = open_ground(pocket, wide)
    assert LIBRARY["explore"](view) == "move_right"
    assert scout(view) == "move_left"


def test_what_is_wanted_counts_more():
    left = [(x, y) for x in range(20, 26) for y in range(29, 36)]
    right = [(x, y) for x in range(38, 50) for y in range(26, 39)]
    view = open_ground(left, right)
    assert scout(view) == "move_right"
    assert scout(view, "water") == "move_right"  # none is known, so that no ground is likelier than another


def test_explore_looks_for_creatures_where_they_are_in_sight():
    explore = LIBRARY["explore"]
    rows = range(26, 39)
    left, right = ([(x, y) for x in columns for y in rows] for columns in (range(20, 28), range(36, 45)))
    view = open_ground(left, right, cow=(29, 32))
    assert ("cow", -3, 0) in view.objects
    assert explore(view, "cow") != "move_right"
    assert explore(view, "zombie") == explore(view) == "move_right"  # none in sight: as if none were named


def test_nothing_new_in_reach():
    view = open_ground([], [])
    assert scout(view) is None
    assert scout(view, "stone", dig=True) is None


def test_what_it_takes_is_checked():
    _, view = wander(1)
    with pytest.raises(ValueError, match="no material or object"):
        scout(view, "mountain")
    with pytest.raises(ValueError, match="'cow' is none; explore and approach"):
        scout(view, "stone", "cow")
    with pytest.raises(ValueError, match="avoid takes"):
        scout(view, avoid=("lava",))
    with pytest.raises(TypeError, match="the view"):
        scout(None, "stone")


@pytest.mark.parametrize("seed", range(8))
def test_it_does_not_go_to_and_fro(seed):
    """Without creatures that stand in the way, what is gone for comes into sight."""
    env = world().make("crafter_score")
    env.reset(seed)
    simulation = env._simulation
    simulation.state[layout.ITEM + 4 : layout.ITEM + 16] = 9
    decoder = host_side.decoder()
    seen, since = env.novelty(), 0
    for _ in range(400):
        simulation.objects[1:] = 0
        simulation.occupant[simulation.occupant > 1] = 0
        simulation.state[layout.ITEM : layout.ITEM + 4] = 9
        simulation.look()
        view = decoder.view(env.view(True))
        step = scout(view, *MOUNTAIN, dig=True)
        if step is None:
            break
        env.step((names.ACTIONS.index(step),))
        since = 0 if env.novelty() > seen else since + 1
        seen = max(seen, env.novelty())
        assert since < 40, view.position
    assert seen > 700
