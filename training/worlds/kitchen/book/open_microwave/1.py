def open_microwave(view):
    """Pull the handle towards the robot."""
    while True:
        view = yield move(dy=-20)
