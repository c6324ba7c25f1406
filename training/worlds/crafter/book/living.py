"""Eating, drinking, sleeping, fighting, growing, surviving."""

from rlgpt.training.worlds.crafter.book.parts import KEEP_ALIVE

DRINK = (
    """
def drink(view):
    while view.drink < 9 or "collect_drink" not in view.achieved:
        if view.front == "water":
            view = yield "do"
        else:
            view = yield approach(view, "water") or explore(view) or "noop"
""",
)
EAT_COW = (
    """
def eat_cow(view):
    while view.food < 6 or "eat_cow" not in view.achieved:
        if view.front == "cow":
            view = yield "do"
        else:
            view = yield approach(view, "cow") or explore(view, "grass") or "noop"
""",
)
SLEEP = (
    """
def sleep(view):
    while view.energy < 9 or view.sleeping or "wake_up" not in view.achieved:
        view = yield "sleep"
""",
    """
def sleep(view):
    while view.energy < 9 or view.sleeping or "wake_up" not in view.achieved:
        view = yield fight(view) or "sleep"
""",
)
DEFEAT_ZOMBIE = (
    """
def defeat_zombie(view):
    while "defeat_zombie" not in view.achieved:
        view = yield fight(view) or approach(view, "zombie") or explore(view, "grass") or "noop"
""",
)
DEFEAT_SKELETON = (
    """
def defeat_skeleton(view):
    while "defeat_skeleton" not in view.achieved:
        step = fight(view) or approach(view, "skeleton", dig=True)
        view = yield step or explore(view, "path", "stone", dig=True) or explore(view, dig=True) or "noop"
""",
    KEEP_ALIVE
    + """
def defeat_skeleton(view):
    while "defeat_skeleton" not in view.achieved:
        view = yield from keep_alive(view)
        step = approach(view, "skeleton", dig=True)
        view = yield step or explore(view, "path", dig=True) or explore(view, "stone", dig=True) or "noop"
""",
)
COLLECT_SAPLING = (
    """
def collect_sapling(view):
    while view.inventory["sapling"] < 1:
        if view.front == "grass":
            view = yield "do"
        else:
            view = yield approach(view, "grass") or explore(view) or "noop"
""",
)
PLACE_PLANT = (
    """
def place_plant(view):
    while "place_plant" not in view.achieved:
        if view.front == "grass":
            view = yield "place_plant" if view.inventory["sapling"] else "do"
        else:
            view = yield approach(view, "grass") or explore(view) or "noop"
""",
)
EAT_PLANT = (
    """
def eat_plant(view):
    while "eat_plant" not in view.achieved:
        if view.front == "ripe_plant":
            view = yield "do"
        elif nearest(view, "ripe_plant"):
            view = yield approach(view, "ripe_plant") or "noop"
        elif nearest(view, "sapling"):
            view = yield fight(view) or "noop"
        elif view.front == "grass":
            view = yield "place_plant" if view.inventory["sapling"] else "do"
        else:
            view = yield approach(view, "grass") or explore(view) or "noop"
""",
)
SURVIVE_NIGHT = (
    """
def survive_night(view):
    while view.steps < 300:
        view = yield fight(view) or flee(view, "zombie", "skeleton") or "noop"
""",
    """
def survive_night(view):
    while view.steps < 300:
        step = fight(view) or shelter(view)
        if step == "noop" and view.energy < 9:
            step = "sleep"
        view = yield step or explore(view, "stone", dig=True) or flee(view, "zombie", "skeleton") or "noop"
""",
    KEEP_ALIVE
    + """
def survive_night(view):
    while view.steps < 300:
        view = yield from keep_alive(view)
        step = shelter(view)
        if step == "noop" and view.energy < 9:
            step = "sleep"
        view = yield step or explore(view, "stone", dig=True) or flee(view, "zombie", "skeleton") or "noop"
""",
)
