def collect_sapling(view):
    while view.inventory["sapling"] < 1:
        if view.front == "grass":
            view = yield "do"
        else:
            view = yield approach(view, "grass") or explore(view) or "noop"
