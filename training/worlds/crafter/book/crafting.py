"""Placing and making."""

from rlgpt.training.worlds.crafter.book.parts import BENCH, GET, KEEP_ALIVE, NIGHT

PLACE_TABLE = (
    """
def place_table(view):
    while "place_table" not in view.achieved:
        if view.inventory["wood"] < 2:
            view = yield "do" if view.front == "tree" else approach(view, "tree") or explore(view) or "noop"
        elif view.front in ("grass", "sand", "path"):
            view = yield "place_table"
        else:
            view = yield explore(view) or "noop"
""",
)
PLACE_STONE = (
    """
def place_stone(view):
    while "place_stone" not in view.achieved:
        if view.front in ("grass", "sand", "path", "water", "lava"):
            view = yield "place_stone"
        else:
            view = yield explore(view) or "noop"
""",
)
PLACE_FURNACE = (
    """
def place_furnace(view):
    while "place_furnace" not in view.achieved:
        if view.inventory["stone"] < 4:
            view = yield "do" if view.front == "stone" else approach(view, "stone") or explore(view) or "noop"
        elif not view.near_table:
            view = yield approach(view, "table") or explore(view) or "noop"
        elif view.front in ("grass", "sand", "path"):
            view = yield "place_furnace"
        else:
            view = yield explore(view) or "noop"
""",
    KEEP_ALIVE
    + GET
    + BENCH
    + """
def place_furnace(view):
    while "place_furnace" not in view.achieved:
        view = yield from keep_alive(view)
        if view.inventory["stone"] < 4 and not view.near_furnace:
            view = yield get(view, "stone")
        else:
            view = yield bench(view, True) or "noop"
""",
)


def _make(tool: str, furnace: bool, materials: tuple[tuple[str, str], ...], night: bool) -> tuple[str, ...]:
    near = "view.near_table and view.near_furnace" if furnace else "view.near_table"
    stations = '"furnace"' if furnace else '"table"'
    lacks = "".join(
        f'''
        elif items["{item}"] < 1:
            view = yield get(view, "{material}")'''
        for item, material in materials
    ).replace("elif", "if", 1)
    rest = "" if not night else "\n        view = yield from by_night(view, None)"
    return (
        f'''
def make_{tool}(view):
    while not view.inventory["{tool}"]:
        if {near}:
            view = yield "make_{tool}"
        else:
            view = yield approach(view, {stations}) or explore(view) or "noop"
''',
        KEEP_ALIVE
        + GET
        + BENCH
        + (NIGHT if night else "")
        + f'''
def make_{tool}(view):
    while not view.inventory["{tool}"]:
        view = yield from keep_alive(view){rest}
        items = view.inventory{lacks}
        else:
            view = yield bench(view, {furnace}) or "make_{tool}"
''',
    )


_WOOD, _STONE, _COAL, _IRON = ("wood", "tree"), ("stone", "stone"), ("coal", "coal"), ("iron", "iron")
MAKE_WOOD_PICKAXE = _make("wood_pickaxe", False, (_WOOD,), False)
MAKE_WOOD_SWORD = _make("wood_sword", False, (_WOOD,), False)
MAKE_STONE_PICKAXE = _make("stone_pickaxe", False, (_WOOD, _STONE), False)
MAKE_STONE_SWORD = _make("stone_sword", False, (_WOOD, _STONE), False)
MAKE_IRON_PICKAXE = _make("iron_pickaxe", True, (_WOOD, _COAL, _IRON), True)
MAKE_IRON_SWORD = _make("iron_sword", True, (_WOOD, _COAL, _IRON), True)
