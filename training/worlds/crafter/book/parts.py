"""Functions that longer versions begin with."""

DARK = """
def dark(view):
    return view.daylight < (0.35 if view.steps % 300 < 210 else 0.6)
"""

KEEP_ALIVE = (
    DARK
    + '''

def keep_alive(view):
    """Fight what is adjacent; drink and eat in time, by day."""
    while True:
        step = fight(view)
        low = 1 if dark(view) else 5
        if not step and view.drink < (8 if view.front == "water" else low):
            step = "do" if view.front == "water" else approach(view, "water", dig=True)
        if not step and view.food < low:
            step = "do" if view.front == "cow" else approach(view, "cow")
            if not step and view.food < 3 and not dark(view):
                step = explore(view, "grass")
        if not step:
            return view
        view = yield step
'''
)

GET = '''
def get(view, material):
    """The next primitive to collect one more of a material."""
    if view.front == material:
        return "do"
    step = approach(view, material, dig=True)
    if not step and material in ("coal", "iron", "diamond"):
        step = explore(view, "stone", "coal", "path", dig=True, bridge=True)
    return step or explore(view, material, dig=True, bridge=True) or explore(view, dig=True) or "noop"
'''

BENCH = '''
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
'''

NIGHT = '''
def by_night(view, material):
    """In the dark search underground only, and rest behind stone when tired, hurt or out of ways."""
    while dark(view):
        step = fight(view)
        if not step and material and view.health > 4 and view.energy > 2:
            step = "do" if view.front == material else approach(view, material, dig=True, avoid=("grass",))
            step = step or explore(view, "stone", "coal", "path", dig=True, avoid=("grass",))
        if not step:
            step = shelter(view)
            if step == "noop" and view.energy < 9:
                step = "sleep"
        if not step:
            return view
        view = yield step
    return view
'''
