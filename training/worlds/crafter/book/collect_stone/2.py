# parts: keep_alive, get

def collect_stone(view):
    while view.inventory["stone"] < 1:
        view = yield from keep_alive(view)
        view = yield get(view, "stone")
