def make_wood_pickaxe(view):
    while not view.inventory["wood_pickaxe"]:
        if view.near_table:
            view = yield "make_wood_pickaxe"
        else:
            view = yield approach(view, "table") or explore(view) or "noop"
