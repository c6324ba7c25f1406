def make_iron_pickaxe(view):
    while not view.inventory["iron_pickaxe"]:
        if view.near_table and view.near_furnace:
            view = yield "make_iron_pickaxe"
        else:
            view = yield approach(view, "furnace") or explore(view) or "noop"
