# parts: keep_alive, get, bench

def make_wood_pickaxe(view):
    while not view.inventory["wood_pickaxe"]:
        view = yield from keep_alive(view)
        items = view.inventory
        if items["wood"] < 1:
            view = yield get(view, "tree")
        else:
            view = yield bench(view, False) or "make_wood_pickaxe"
