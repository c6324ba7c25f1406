# parts: keep_alive, get

def gather_stones(view):
    while view.inventory["stone"] < 8:
        view = yield from keep_alive(view)
        view = yield get(view, "stone")
