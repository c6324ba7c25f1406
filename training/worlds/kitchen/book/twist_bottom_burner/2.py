def twist_bottom_burner(view):
    """As before, as long as there is a grip and the wrist can turn; else turn back open and take hold again."""
    while view.holding and view.roll < 1100:
        view = yield move(roll=150)
    while view.roll > 0:
        view = yield move(roll=-200, fingers=OPEN)
