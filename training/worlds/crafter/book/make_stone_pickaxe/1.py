def make_stone_pickaxe(view):
    while not view.inventory["stone_pickaxe"]:
        if view.near_table:
            view = yield "make_stone_pickaxe"
        else:
            view = yield approach(view, "table") or explore(view) or "noop"
