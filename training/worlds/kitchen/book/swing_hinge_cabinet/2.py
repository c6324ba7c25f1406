def swing_hinge_cabinet(view):
    """The grip slips when the door stands half open: let go, and push the handle to the right from its left side."""
    while True:
        dx, dy, dz = offset(view, "hinge_cabinet")
        if dy < 80 and (view.fingers == OPEN or view.gap > 30):
            view = yield move(dy=-40, fingers=OPEN)
        elif dy > 60 and dx < 60:
            view = yield go(view, beside(view, "hinge_cabinet", -90, -100, 0), fingers=CLOSE)
        elif dx > 40 and dy > 20:
            view = yield move(dy=25)
        else:
            view = yield move(dx=40)
