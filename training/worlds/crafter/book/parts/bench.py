WAYS = (("move_left", -1, 0), ("move_right", 1, 0), ("move_up", 0, -1), ("move_down", 0, 1))
OPEN = ("grass", "sand", "path")


def bench(view, furnace):
    """The next primitive towards standing by a table (and a furnace); None when there."""
    items = view.inventory
    if furnace and items["stone"] < 4 and not view.near_furnace:
        return get(view, "stone")
    if not view.near_table:
        far = steps_to(view, "table", dig=True)
        if far is not None and (far < 15 or items["wood"] < 3):
            return approach(view, "table", dig=True)
        if items["wood"] < 3:
            return get(view, "tree")
        return "place_table" if view.front in OPEN else face_open(view)
    if furnace and not view.near_furnace:
        return "place_furnace" if view.front in OPEN else face_open(view)
    return None


def face_open(view):
    """Face a cell that something can be placed on, without leaving a table next to the agent."""
    if view.front == "stone":
        return "do"
    for move, dx, dy in WAYS:
        if view.at(dx, dy) == "stone":
            return move
    tables = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if view.at(dx, dy) == "table"]
    fallback = "noop"
    for move, dx, dy in WAYS:
        stays = not tables or any(abs(x - dx) < 2 and abs(y - dy) < 2 for x, y in tables)
        if view.at(dx, dy) in OPEN and stays:
            if view.at(2 * dx, 2 * dy) in OPEN:
                return move
            fallback = move
    return fallback
