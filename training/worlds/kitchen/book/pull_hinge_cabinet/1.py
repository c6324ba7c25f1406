def pull_hinge_cabinet(view):
    """Pull the handle towards the robot."""
    while True:
        view = yield move(dy=-20)
