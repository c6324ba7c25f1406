# parts: keep_alive

WAYS = ((-1, 0), (1, 0), (0, -1), (0, 1))
OPEN = ("grass", "sand", "path")
FACES = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


def wall(view, x, y):
    """The next primitive towards a stone on the cell at an offset: walk at it in a straight line, stop one
    cell before it, place."""
    best = None
    for dx, dy in WAYS:
        stand = (x - dx, y - dy)
        begin = (x - 2 * dx, y - 2 * dy)
        if view.at(stand[0], stand[1]) in OPEN and (begin == (0, 0) or view.at(begin[0], begin[1]) in OPEN):
            far = abs(begin[0]) + abs(begin[1])
            if best is None or far < best[0]:
                best = (far, begin, (dx, dy))
    if best is None:
        return None
    far, begin, ahead = best
    return go(view, begin[0], begin[1]) if far else towards(ahead[0], ahead[1])


def open_sides(view, x, y):
    return [(x + dx, y + dy) for dx, dy in WAYS if view.material(x + dx, y + dy) in OPEN]


def eat_plant(view):
    while "eat_plant" not in view.achieved:
        view = yield from keep_alive(view)
        plant = nearest(view, "plant")
        if plant is None:
            if view.front == "grass":
                view = yield "place_plant" if view.inventory["sapling"] else "do"
            else:
                view = yield approach(view, "grass") or explore(view) or "noop"
            continue
        x, y = plant
        if view.front == "ripe_plant":
            view = yield "do"
            continue
        step = None
        sides = sorted(open_sides(view, x, y), key=lambda side: abs(side[0]) + abs(side[1]), reverse=True)
        if view.at(x, y) == "ripe_plant":
            step = approach(view, "plant", dig=True)
        elif sides and view.inventory["stone"] and not dark(view):
            if FACES[view.facing] in sides and view.front in OPEN:
                step = "place_stone"
            elif abs(x) + abs(y) > 5:
                step = approach(view, "plant", dig=True)
            for side in sides:
                step = step or wall(view, side[0], side[1])
        elif dark(view) or view.steps < 420:
            step = shelter(view)
            if step == "noop" and view.energy < 9:
                step = "sleep"
        elif abs(x) + abs(y) > 3:
            step = approach(view, "plant", dig=True)
        view = yield step or "noop"
