def dark(view):
    return view.daylight < (0.35 if view.steps % 300 < 210 else 0.6)


def keep_alive(view):
    """Fight what is adjacent; drink and eat in time, by day."""
    while True:
        step = fight(view)
        low = 1 if dark(view) else 5
        if not step and view.drink < (8 if view.front == "water" else low):
            step = "do" if view.front == "water" else approach(view, "water", dig=True)
        if not step and view.food < low:
            step = "do" if view.front == "cow" else approach(view, "cow")
            if not step and view.food < 3 and not dark(view):
                step = explore(view, "grass")
        if not step:
            return view
        view = yield step
