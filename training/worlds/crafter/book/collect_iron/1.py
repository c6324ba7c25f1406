def collect_iron(view):
    while view.inventory["iron"] < 1:
        if view.front == "iron":
            view = yield "do"
        else:
            view = yield approach(view, "iron", dig=True) or explore(view, dig=True) or "noop"
