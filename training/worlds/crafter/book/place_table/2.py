# parts: keep_alive, get, bench

def place_table(view):
    """By the mountain, so that what is mined there needs no way back to the table."""
    while "place_table" not in view.achieved:
        view = yield from keep_alive(view)
        far = steps_to(view, "stone")
        if view.inventory["wood"] < 2:
            view = yield get(view, "tree")
        elif far is not None and far <= 2:
            view = yield "place_table" if view.front in OPEN else face_open(view)
        else:
            step = approach(view, "stone") or scout(view, "stone", "path", "coal", "iron") or explore(view, "stone")
            view = yield step or ("place_table" if view.front in OPEN else face_open(view))
