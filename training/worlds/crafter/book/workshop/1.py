WAYS = (("move_left", -1, 0), ("move_right", 1, 0), ("move_up", 0, -1), ("move_down", 0, 1))
OPEN = ("grass", "sand", "path")


def available(view):
    items = view.inventory
    held = items["iron"] >= 1 and items["coal"] >= 1 and items["wood"] >= 3
    return held and not (view.near_table and view.near_furnace)


def stays(view, dx, dy):
    """Whether a table is still close enough after a step."""
    cells = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)]
    return any(view.at(dx + x, dy + y) == "table" for x, y in cells)


def workshop(view):
    """A table and a furnace where the agent stands."""
    while not (view.near_table and view.near_furnace):
        if view.inventory["stone"] < 4 and not view.near_furnace:
            view = yield "do" if view.front == "stone" else approach(view, "stone", dig=True) or explore(view) or "noop"
        elif view.front in OPEN and view.near_table:
            view = yield "place_furnace"
        elif view.front in OPEN:
            if view.inventory["wood"] < 3:
                return
            view = yield "place_table"
        elif view.front in ("stone", "coal", "tree"):
            view = yield "do"
        else:
            turns = [way for way, dx, dy in WAYS if view.at(dx, dy) in ("stone", "coal", "tree")]
            steps = [way for way, dx, dy in WAYS if view.at(dx, dy) in OPEN and stays(view, dx, dy)]
            view = yield (turns + steps + [explore(view) or "noop"])[0]
