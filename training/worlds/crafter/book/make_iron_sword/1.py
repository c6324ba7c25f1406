def make_iron_sword(view):
    while not view.inventory["iron_sword"]:
        if view.near_table and view.near_furnace:
            view = yield "make_iron_sword"
        else:
            view = yield approach(view, "furnace") or explore(view) or "noop"
