FREE = ("path", "sand", "grass")
OPEN = ("water", "lava")
SOLID = ("stone", "coal", "iron", "diamond", "tree", "table", "furnace")
WAYS = (("left", -1, 0), ("right", 1, 0), ("up", 0, -1), ("down", 0, 1))


def around(view, x, y):
    return [view.at(x + dx, y + dy) for _, dx, dy in WAYS if (x + dx, y + dy) != (0, 0)]


def cover(view):
    """Close a straight line of free cells up to water or lava: nobody walks there, but an arrow flies over it."""
    for way, dx, dy in WAYS:
        far = 1
        while far < 5 and view.at(far * dx, far * dy) in FREE:
            far += 1
        end = view.at(far * dx, far * dy)
        if end in OPEN:
            if end == "lava" and far == 1 and view.facing != way:  # a turn to it would be a step into it
                return aside(view, dx, dy)
            if view.inventory["stone"]:
                return "place_stone" if view.facing == way else "move_" + way
    return None


def aside(view, dx, dy):
    """Into a cell beside the line, or dig one out of stone where all around it is solid."""
    for way, x, y in WAYS:
        if x * dx + y * dy == 0:
            cells = around(view, x, y)
            if view.at(x, y) == "path" and not any(cell in OPEN for cell in cells):
                return "move_" + way
            if view.at(x, y) == "stone" and all(cell in SOLID for cell in cells):
                return "do" if view.facing == way else "move_" + way
    return None


def survive_night(view):
    while view.steps < 300:
        step = fight(view) or shelter(view)
        if step == "noop":
            step = cover(view) or ("sleep" if view.energy < 9 else "noop")
        view = yield step or explore(view, "stone", dig=True) or flee(view, "zombie", "skeleton") or "noop"
