def grasp_hinge_cabinet(view):
    """As before; where the fingers stand on something or close on nothing, the next try is a little to one side."""
    aside = 0
    while True:
        dx, dy, dz = offset(view, "hinge_cabinet")
        blocked = view.fingers == OPEN and dy < 110 and view.lag[1] > 45
        empty = view.fingers == CLOSE and view.gap < 5
        if blocked or empty:
            aside = 20 if aside <= 0 else -20
            for _ in range(5):
                view = yield move(dy=-30, fingers=OPEN)
        elif abs(dx + aside) > 30 or abs(dz) > 30:
            view = yield go(view, beside(view, "hinge_cabinet", aside, -120, 0), fingers=OPEN)
        elif dy > 30:
            view = yield go(view, beside(view, "hinge_cabinet", aside, -25, 0), 20, OPEN)
        else:
            view = yield move(fingers=CLOSE)
