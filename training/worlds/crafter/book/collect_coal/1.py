def collect_coal(view):
    while view.inventory["coal"] < 1:
        if view.front == "coal":
            view = yield "do"
        else:
            view = yield approach(view, "coal", dig=True) or explore(view, dig=True) or "noop"
