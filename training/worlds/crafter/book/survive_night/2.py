def survive_night(view):
    while view.steps < 300:
        step = fight(view) or shelter(view)
        if step == "noop" and view.energy < 9:
            step = "sleep"
        view = yield step or explore(view, "stone", dig=True) or flee(view, "zombie", "skeleton") or "noop"
