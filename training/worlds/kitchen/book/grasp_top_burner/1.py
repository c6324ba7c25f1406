def grasp_top_burner(view):
    """Stand in front of the handle, go forward with open fingers, close them."""
    while True:
        dx, dy, dz = offset(view, "top_burner")
        if abs(dx) > 30 or abs(dz) > 30:
            view = yield go(view, beside(view, "top_burner", 0, -130, 0), fingers=OPEN)
        elif dy > 35:
            view = yield go(view, beside(view, "top_burner", 0, -30, 0), 20, OPEN)
        else:
            view = yield move(fingers=CLOSE)
