def eat_plant(view):
    while "eat_plant" not in view.achieved:
        if view.front == "ripe_plant":
            view = yield "do"
        elif nearest(view, "ripe_plant"):
            view = yield approach(view, "ripe_plant") or "noop"
        elif nearest(view, "plant"):
            view = yield fight(view) or "noop"
        elif view.front == "grass":
            view = yield "place_plant" if view.inventory["sapling"] else "do"
        else:
            view = yield approach(view, "grass") or explore(view) or "noop"
