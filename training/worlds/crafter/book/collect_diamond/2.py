# parts: keep_alive, get

def collect_diamond(view):
    while view.inventory["diamond"] < 1:
        view = yield from keep_alive(view)
        view = yield get(view, "diamond")
