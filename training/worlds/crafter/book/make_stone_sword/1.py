def make_stone_sword(view):
    while not view.inventory["stone_sword"]:
        if view.near_table:
            view = yield "make_stone_sword"
        else:
            view = yield approach(view, "table") or explore(view) or "noop"
