# parts: dark

WAYS = ((-1, 0), (1, 0), (0, -1), (0, 1))
MOVES = {(-1, 0): "move_left", (1, 0): "move_right", (0, -1): "move_up", (0, 1): "move_down"}
FACES = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
OPEN = ("grass", "sand", "path")
ROOM = ("stone", "sand", "path")
PLANTS = ("plant", "sapling", "ripe_plant")
FRAGILE = ("unknown", "table", "furnace")


def survey(ground, x, y, way):
    """A burrow whose door is the plant: a plant at (x, y), behind it a room of two cells, all around closed.
    (cost, the cells before, of and behind plant and room, way in, planted, whether one can drink in it, cells to
    close from outside, cells to close from inside); None where something is not known or does not last."""
    dx, dy = way
    line = [(x - dx, y - dy), (x, y), (x + dx, y + dy), (x + 2 * dx, y + 2 * dy), (x + 3 * dx, y + 3 * dy)]
    sides = []
    for a, b in line[1:4]:
        sides.append((a - dy, b - dx))
        sides.append((a + dy, b + dx))
    planted = ground[x, y] in PLANTS
    ends = [line[4]] if planted else [line[0], line[4]]
    around = sides + [line[0], line[4]]
    outer, inner = [], []
    for cell in around:
        what = ground[cell]
        if what in FRAGILE:
            return None
        if what in OPEN:
            (inner if cell in ends else outer).append(cell)
    wet = "water" in (ground[sides[2]], ground[sides[3]], ground[sides[4]], ground[sides[5]], ground[line[4]])
    cost = 6 * len(outer) + 2 * len(inner) + 2 * (abs(x) + abs(y)) - 16 * wet
    return (cost, line, way, planted, wet, outer, inner)


def burrow(view):
    """The burrow to be in: one with a plant that is nearly closed, else the one that takes the least work. None if
    none can be finished with the stones at hand."""
    ground = {
        (x, y): view.at(x, y) for x in range(-13, 14) for y in range(max(-13, abs(x) - 14), min(14, 15 - abs(x)))
    }
    ground[0, 0] = view.material(0, 0)
    for name, x, y in view.objects:
        if name not in PLANTS:
            ground[x, y] = view.material(x, y)
    grown, found = [], []
    stones = view.inventory["stone"]
    for (x, y), what in ground.items():
        if (what == "grass" or what in PLANTS) and abs(x) + abs(y) < 11:
            for way in WAYS:
                dx, dy = way
                if ground[x + dx, y + dy] in ROOM and ground[x + 2 * dx, y + 2 * dy] in ROOM:
                    site = survey(ground, x, y, way)
                    if site and len(site[5]) + len(site[6]) <= stones:
                        (grown if site[3] and len(site[5]) < 4 else found).append(site)
    for site in sorted(grown) + sorted(found)[:8]:
        if enter(view, site) and all(wall(view, x, y) for x, y in site[5]):
            return site
    return None


def into(view, way):
    """Walk that way, or dig."""
    return "do" if FACES[view.facing] == way and view.front == "stone" else MOVES[way]


def enter(view, site):
    """The next primitive on the way in through an end, without breaking a wall."""
    cost, line, way, planted, wet, outer, inner = site
    ends = line[4:] if planted else [line[0], line[4]]
    if (0, 0) in line[1:4]:
        return "noop"
    if (0, 0) in ends:
        return into(view, way if line[0] == (0, 0) else (-way[0], -way[1]))
    for x, y in ends:
        step = go(view, x, y)
        if step:
            return step
    return None


def free(view, x, y):
    return (x, y) == (0, 0) or view.material(x, y) in OPEN and view.at(x, y) not in PLANTS


def wall(view, x, y):
    """The next primitive towards a stone on the cell at an offset: walk at it in a straight line, stop one
    cell before it, place."""
    best = None
    for dx, dy in WAYS:
        begin = (x - 2 * dx, y - 2 * dy)
        if (x - dx, y - dy) == (0, 0) and FACES[view.facing] == (dx, dy):
            return "place_stone"
        if free(view, x - dx, y - dy) and free(view, begin[0], begin[1]):
            step = MOVES[dx, dy] if begin == (0, 0) else go(view, begin[0], begin[1])
            far = abs(begin[0]) + abs(begin[1])
            if step and (best is None or far < best[0]):
                best = (far, step)
    return best[1] if best else None


def forage(view):
    """The next primitive towards eating and drinking enough for 300 steps; None when full, or late and not hungry."""
    early = view.steps % 300 < 110
    if view.drink < (9 if view.front == "water" else 8):
        step = "do" if view.front == "water" else approach(view, "water", dig=True)
        if step or view.drink < 7 or early:
            return step or explore(view, "sand", "grass", dig=True)
    if view.food < 7:
        step = "do" if view.front == "cow" else approach(view, "cow")
        if step or view.food < 5 or early:
            return step or explore(view, "grass", dig=True)
    return None


def rest(view):
    return "sleep" if view.energy < 9 else "noop"


def live(view, site):
    """In the room: close its ends, each when coming from the other; plant, and wait by the plant. None when it is
    better to go out and eat first."""
    cost, line, way, planted, wet, outer, inner = site
    at = line.index((0, 0))
    back = (-way[0], -way[1])
    ahead = FACES[view.facing]
    poor = not planted and (view.food < 5 or view.drink < (4 if wet else 7)) and view.steps_left > 330
    if poor and (view.steps % 300 < 140 or view.daylight > 0.7):
        return None
    if ahead in inner:
        return "place_stone"
    if at == 2 and view.at(way[0], way[1]) == "stone":
        return into(view, way)
    if line[0] in inner:
        return into(view, way if at == 1 else back)
    if line[4] in inner:
        return into(view, back if at == 3 else way)
    if at == 1:
        return into(view, way)
    if poor:
        return rest(view)
    if view.drink < (9 if view.front == "water" else 5):
        for dx, dy in WAYS:
            if view.at(dx, dy) == "water":
                return "do" if ahead == (dx, dy) else MOVES[dx, dy]
        there = way if at == 2 else back
        if any(view.at(there[0] + dx, there[1] + dy) == "water" for dx, dy in WAYS):
            return into(view, there)
    if at == 3:
        return into(view, back)
    if ahead != back:
        return into(view, back if planted else way)
    if view.front == "grass":
        return "place_plant" if view.inventory["sapling"] else "do"
    return rest(view)


def eat_plant(view):
    while "eat_plant" not in view.achieved:
        if view.sleeping and view.energy < 9:
            view = yield "noop"
            continue
        step = "do" if view.front == "ripe_plant" else fight(view)
        site = None if step else burrow(view)
        if site and not site[5] and (0, 0) in site[1][1:4]:
            step = live(view, site)
        if not step and dark(view):
            step = shelter(view)
            step = rest(view) if step == "noop" else step
        step = step or forage(view)
        if site:
            for x, y in site[5]:
                step = step or wall(view, x, y)
            step = step or enter(view, site)
        if not step and view.inventory["stone"] < 9:
            step = "do" if view.front == "stone" else approach(view, "stone", dig=True)
        view = yield step or explore(view, "stone", dig=True) or explore(view, dig=True) or "noop"
