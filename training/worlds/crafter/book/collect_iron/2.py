# parts: keep_alive, get

def collect_iron(view):
    while view.inventory["iron"] < 1:
        view = yield from keep_alive(view)
        view = yield get(view, "iron")
