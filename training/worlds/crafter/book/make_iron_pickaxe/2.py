# parts: keep_alive, get, bench, night

def make_iron_pickaxe(view):
    while not view.inventory["iron_pickaxe"]:
        view = yield from keep_alive(view)
        view = yield from by_night(view, None)
        items = view.inventory
        if items["wood"] < 1:
            view = yield get(view, "tree")
        elif items["coal"] < 1:
            view = yield get(view, "coal")
        elif items["iron"] < 1:
            view = yield get(view, "iron")
        else:
            view = yield bench(view, True) or "make_iron_pickaxe"
