def push_slide_cabinet(view):
    """Push the handle to the right."""
    while True:
        view = yield move(dx=20)
