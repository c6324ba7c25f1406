def pull_hinge_cabinet(view):
    """As before, as long as there is a grip; without one the handle has to be taken hold of again."""
    while view.holding:
        view = yield move(dy=-20)
