def grasp_bottom_burner(view):
    """Stand in front of the handle, go forward with open fingers, close them."""
    while True:
        dx, dy, dz = offset(view, "bottom_burner")
        if abs(dx) > 30 or abs(dz) > 30:
            view = yield go(view, beside(view, "bottom_burner", 0, -130, 0), fingers=OPEN)
        elif dy > 35:
            view = yield go(view, beside(view, "bottom_burner", 0, -30, 0), 20, OPEN)
        else:
            view = yield move(fingers=CLOSE)
