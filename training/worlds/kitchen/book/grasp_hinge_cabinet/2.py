def grasp_hinge_cabinet(view):
    """As before; fingers that have closed on nothing open again, and the hand draws back and starts over."""
    while True:
        dx, dy, dz = offset(view, "hinge_cabinet")
        if view.fingers == CLOSE and view.gap < 5:
            for _ in range(5):
                view = yield move(dy=-30, fingers=OPEN)
        elif abs(dx) > 30 or abs(dz) > 30:
            view = yield go(view, beside(view, "hinge_cabinet", 0, -120, 0), fingers=OPEN)
        elif dy > 30:
            view = yield go(view, beside(view, "hinge_cabinet", 0, -25, 0), 20, OPEN)
        else:
            view = yield move(fingers=CLOSE)
