def carry_kettle(view):
    """As before; what is said about the handle may be wrong, so the hand tells how far it was lifted."""
    start = view.hand[2]
    while view.holding:
        if view.hand[2] < start + 20 and view.opened("kettle") < 0.1:
            view = yield move(dz=15)
        else:
            view = yield move(dy=20)
