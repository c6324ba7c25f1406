def gather_stones(view):
    while view.inventory["stone"] < 8:
        if view.front == "stone":
            view = yield "do"
        else:
            view = yield approach(view, "stone", dig=True) or explore(view, dig=True) or "noop"
