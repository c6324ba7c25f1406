def place_furnace(view):
    while "place_furnace" not in view.achieved:
        if view.inventory["stone"] < 4:
            view = yield "do" if view.front == "stone" else approach(view, "stone") or explore(view) or "noop"
        elif not view.near_table:
            view = yield approach(view, "table") or explore(view) or "noop"
        elif view.front in ("grass", "sand", "path"):
            view = yield "place_furnace"
        else:
            view = yield explore(view) or "noop"
