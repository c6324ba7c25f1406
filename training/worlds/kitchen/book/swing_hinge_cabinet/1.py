def swing_hinge_cabinet(view):
    """Pull the handle along its circle, to the right and towards the robot."""
    while True:
        view = yield move(dx=20, dy=-20)
