def grasp_kettle(view):
    """As before; fingers that have closed on nothing open again, and the hand draws back and starts over."""
    while True:
        dx, dy, dz = offset(view, "kettle")
        if view.fingers == CLOSE and view.gap < 5:
            for _ in range(5):
                view = yield move(dy=-30, fingers=OPEN)
        elif abs(dx) > 30 or abs(dz) > 30 or view.roll > -1550:
            view = yield go(view, beside(view, "kettle", 0, -150, 0), fingers=OPEN, roll=-1571)
        elif dy > 30:
            view = yield go(view, beside(view, "kettle", 0, -25, 0), 20, OPEN)
        else:
            view = yield move(fingers=CLOSE)
