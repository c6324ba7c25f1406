def twist_top_burner(view):
    """Turn the hand clockwise with the knob between the fingers."""
    while True:
        view = yield move(roll=150)
