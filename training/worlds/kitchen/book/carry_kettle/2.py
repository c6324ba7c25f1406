def carry_kettle(view):
    """As before, as long as there is a grip; a kettle that slipped out has to be taken hold of again."""
    while view.holding:
        if view.handle("kettle")[2] < 1900:
            view = yield move(dz=15)
        else:
            view = yield move(dy=20)
