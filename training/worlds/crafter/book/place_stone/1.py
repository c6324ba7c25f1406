def place_stone(view):
    while "place_stone" not in view.achieved:
        if view.front in ("grass", "sand", "path", "water", "lava"):
            view = yield "place_stone"
        else:
            view = yield explore(view) or "noop"
