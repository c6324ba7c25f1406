def grasp_top_burner(view):
    """As before; fingers that have closed on nothing open again, and the hand draws back and starts over."""
    while True:
        dx, dy, dz = offset(view, "top_burner")
        if view.fingers == CLOSE and view.gap < 5:
            for _ in range(5):
                view = yield move(dy=-30, fingers=OPEN)
        elif abs(dx) > 30 or abs(dz) > 30:
            view = yield go(view, beside(view, "top_burner", 0, -130, 0), fingers=OPEN)
        elif dy > 35:
            view = yield go(view, beside(view, "top_burner", 0, -30, 0), 20, OPEN)
        else:
            view = yield move(fingers=CLOSE)
