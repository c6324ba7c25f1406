# parts: keep_alive, get, bench

def make_stone_pickaxe(view):
    while not view.inventory["stone_pickaxe"]:
        view = yield from keep_alive(view)
        items = view.inventory
        if items["wood"] < 1:
            view = yield get(view, "tree")
        elif items["stone"] < 1:
            view = yield get(view, "stone")
        else:
            view = yield bench(view, False) or "make_stone_pickaxe"
