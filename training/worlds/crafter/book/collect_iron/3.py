# parts: keep_alive, get, night

def collect_iron(view):
    while view.inventory["iron"] < 1:
        view = yield from keep_alive(view)
        view = yield from by_night(view, "iron")
        view = yield get(view, "iron")
