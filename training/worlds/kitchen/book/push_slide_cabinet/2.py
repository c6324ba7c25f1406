def push_slide_cabinet(view):
    """As before; a hand that is past the handle without having moved it has to go back to its left side."""
    while offset(view, "slide_cabinet")[0] > -40:
        view = yield move(dx=20)
