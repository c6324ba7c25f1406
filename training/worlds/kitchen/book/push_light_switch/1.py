def push_light_switch(view):
    """Push the lever to the left."""
    while True:
        view = yield move(dx=-20)
