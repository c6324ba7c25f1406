def place_table(view):
    while "place_table" not in view.achieved:
        if view.inventory["wood"] < 2:
            view = yield "do" if view.front == "tree" else approach(view, "tree") or explore(view) or "noop"
        elif view.front in ("grass", "sand", "path"):
            view = yield "place_table"
        else:
            view = yield explore(view) or "noop"
