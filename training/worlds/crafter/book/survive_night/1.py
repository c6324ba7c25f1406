def survive_night(view):
    while view.steps < 300:
        view = yield fight(view) or flee(view, "zombie", "skeleton") or "noop"
