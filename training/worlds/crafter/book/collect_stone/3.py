# parts: keep_alive, get, night

def collect_stone(view):
    while view.inventory["stone"] < 1:
        view = yield from keep_alive(view)
        view = yield from by_night(view, "stone")
        view = yield get(view, "stone")
