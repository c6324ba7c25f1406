# parts: keep_alive, get, night

def gather_stones(view):
    while view.inventory["stone"] < 8:
        view = yield from keep_alive(view)
        view = yield from by_night(view, "stone")
        view = yield get(view, "stone")
