def grasp_kettle(view):
    """Stand in front of the handle with the fingers above each other, go forward, close them."""
    while True:
        dx, dy, dz = offset(view, "kettle")
        if abs(dx) > 30 or abs(dz) > 30 or view.roll > -1550:
            view = yield go(view, beside(view, "kettle", 0, -150, 0), fingers=OPEN, roll=-1571)
        elif dy > 30:
            view = yield go(view, beside(view, "kettle", 0, -25, 0), 20, OPEN)
        else:
            view = yield move(fingers=CLOSE)
