def grasp_microwave(view):
    """Stand in front of the handle, go forward with open fingers, close them."""
    while True:
        dx, dy, dz = offset(view, "microwave")
        if abs(dx) > 30 or abs(dz) > 30:
            view = yield go(view, beside(view, "microwave", 0, -120, 0), fingers=OPEN)
        elif dy > 30:
            view = yield go(view, beside(view, "microwave", 0, -25, 0), 20, OPEN)
        else:
            view = yield move(fingers=CLOSE)
