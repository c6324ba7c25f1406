def place_plant(view):
    while "place_plant" not in view.achieved:
        if view.front == "grass":
            view = yield "place_plant" if view.inventory["sapling"] else "do"
        else:
            view = yield approach(view, "grass") or explore(view) or "noop"
