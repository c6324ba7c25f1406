"""Collecting materials."""

from rlgpt.training.worlds.crafter.book.parts import GET, KEEP_ALIVE, NIGHT

COLLECT_WOOD = (
    """
def collect_wood(view):
    while view.inventory["wood"] < 8:
        if view.front == "tree":
            view = yield "do"
        else:
            view = yield approach(view, "tree") or explore(view) or "noop"
""",
    KEEP_ALIVE
    + """
def collect_wood(view):
    while view.inventory["wood"] < 8:
        view = yield from keep_alive(view)
        if view.front == "tree":
            view = yield "do"
        else:
            view = yield approach(view, "tree") or explore(view, "tree", "grass") or "noop"
""",
)


def _mine(name: str, material: str, amount: str, item: str) -> tuple[str, ...]:
    return (
        f'''
def {name}(view):
    while view.inventory["{item}"] < {amount}:
        if view.front == "{material}":
            view = yield "do"
        else:
            view = yield approach(view, "{material}", dig=True) or explore(view, dig=True) or "noop"
''',
        KEEP_ALIVE
        + GET
        + f'''
def {name}(view):
    while view.inventory["{item}"] < {amount}:
        view = yield from keep_alive(view)
        view = yield get(view, "{material}")
''',
        KEEP_ALIVE
        + GET
        + NIGHT
        + f'''
def {name}(view):
    while view.inventory["{item}"] < {amount}:
        view = yield from keep_alive(view)
        view = yield from by_night(view, "{material}")
        view = yield get(view, "{material}")
''',
    )


COLLECT_STONE = _mine("collect_stone", "stone", "1", "stone")
COLLECT_COAL = _mine("collect_coal", "coal", "1", "coal")
COLLECT_IRON = _mine("collect_iron", "iron", "1", "iron")
COLLECT_DIAMOND = _mine("collect_diamond", "diamond", "1", "diamond")
GATHER_STONES = _mine("gather_stones", "stone", "8", "stone")
