def eat_cow(view):
    while view.food < 6 or "eat_cow" not in view.achieved:
        if view.front == "cow":
            view = yield "do"
        else:
            view = yield approach(view, "cow") or explore(view, "grass") or "noop"
