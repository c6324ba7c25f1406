def open_microwave(view):
    """As before; where the grip slips, go around the edge of the door and push it open from behind."""
    while True:
        dx, dy, dz = offset(view, "microwave")
        if view.holding:
            view = yield move(dx=-8 - 12 * view.opened("microwave"), dy=-20)
        elif dx > -60 and dy > -20:
            if dy < 70:
                view = yield move(dy=-40, fingers=OPEN)
            else:
                view = yield go(view, beside(view, "microwave", 100, -90, 0), fingers=CLOSE)
        elif dy > -20:
            view = yield go(view, beside(view, "microwave", 100, 40, 0), fingers=CLOSE)
        else:
            view = yield move(dx=-30, dy=-10)
