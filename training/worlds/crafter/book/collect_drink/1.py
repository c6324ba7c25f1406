def collect_drink(view):
    while view.drink < 9 or "collect_drink" not in view.achieved:
        if view.front == "water":
            view = yield "do"
        else:
            view = yield approach(view, "water") or explore(view) or "noop"
