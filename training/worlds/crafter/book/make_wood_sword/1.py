def make_wood_sword(view):
    while not view.inventory["wood_sword"]:
        if view.near_table:
            view = yield "make_wood_sword"
        else:
            view = yield approach(view, "table") or explore(view) or "noop"
