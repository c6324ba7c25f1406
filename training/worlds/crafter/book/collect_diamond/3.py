# parts: keep_alive, get, night

def collect_diamond(view):
    while view.inventory["diamond"] < 1:
        view = yield from keep_alive(view)
        view = yield from by_night(view, "diamond")
        view = yield get(view, "diamond")
