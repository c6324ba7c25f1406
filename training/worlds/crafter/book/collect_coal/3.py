# parts: keep_alive, get, night

def collect_coal(view):
    while view.inventory["coal"] < 1:
        view = yield from keep_alive(view)
        view = yield from by_night(view, "coal")
        view = yield get(view, "coal")
