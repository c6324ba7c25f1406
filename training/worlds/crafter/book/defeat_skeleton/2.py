# parts: keep_alive

def defeat_skeleton(view):
    while "defeat_skeleton" not in view.achieved:
        view = yield from keep_alive(view)
        step = approach(view, "skeleton", dig=True)
        view = yield step or explore(view, "path", dig=True) or explore(view, "stone", dig=True) or "noop"
