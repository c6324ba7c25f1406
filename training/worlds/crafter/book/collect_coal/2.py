# parts: keep_alive, get

def collect_coal(view):
    while view.inventory["coal"] < 1:
        view = yield from keep_alive(view)
        view = yield get(view, "coal")
