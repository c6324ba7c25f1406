# parts: keep_alive

def survive_night(view):
    while view.steps < 300:
        view = yield from keep_alive(view)
        step = shelter(view)
        if step == "noop" and view.energy < 9:
            step = "sleep"
        view = yield step or explore(view, "stone", dig=True) or flee(view, "zombie", "skeleton") or "noop"
