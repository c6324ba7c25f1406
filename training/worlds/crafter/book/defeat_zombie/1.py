def defeat_zombie(view):
    while "defeat_zombie" not in view.achieved:
        view = yield fight(view) or approach(view, "zombie") or explore(view, "grass") or "noop"
