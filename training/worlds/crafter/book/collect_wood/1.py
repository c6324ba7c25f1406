def collect_wood(view):
    while view.inventory["wood"] < 8:
        if view.front == "tree":
            view = yield "do"
        else:
            view = yield approach(view, "tree") or explore(view) or "noop"
