def collect_diamond(view):
    while view.inventory["diamond"] < 1:
        if view.front == "diamond":
            view = yield "do"
        else:
            view = yield approach(view, "diamond", dig=True) or explore(view, dig=True) or "noop"
