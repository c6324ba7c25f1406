def collect_stone(view):
    while view.inventory["stone"] < 1:
        if view.front == "stone":
            view = yield "do"
        else:
            view = yield approach(view, "stone", dig=True) or explore(view, dig=True) or "noop"
