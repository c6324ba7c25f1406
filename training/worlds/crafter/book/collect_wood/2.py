# parts: keep_alive

def collect_wood(view):
    while view.inventory["wood"] < 8:
        view = yield from keep_alive(view)
        if view.front == "tree":
            view = yield "do"
        else:
            view = yield approach(view, "tree") or explore(view, "tree", "grass") or "noop"
