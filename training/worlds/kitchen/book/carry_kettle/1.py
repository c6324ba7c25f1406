def carry_kettle(view):
    """Lift it a little and carry it away from the robot."""
    while True:
        if view.handle("kettle")[2] < 1900:
            view = yield move(dz=15)
        else:
            view = yield move(dy=20)
