# parts: keep_alive, get, bench

def place_furnace(view):
    while "place_furnace" not in view.achieved:
        view = yield from keep_alive(view)
        if view.inventory["stone"] < 4 and not view.near_furnace:
            view = yield get(view, "stone")
        else:
            view = yield bench(view, True) or "noop"
