def defeat_skeleton(view):
    while "defeat_skeleton" not in view.achieved:
        step = fight(view) or approach(view, "skeleton", dig=True)
        view = yield step or explore(view, "path", "stone", dig=True) or explore(view, dig=True) or "noop"
