def open_microwave(view):
    """Pull the handle along its circle: the further the door is open, the more to the left."""
    while True:
        view = yield move(dx=-8 - 12 * view.opened("microwave"), dy=-20)
