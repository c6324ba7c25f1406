def wake_up(view):
    while view.energy < 9 or view.sleeping or "wake_up" not in view.achieved:
        view = yield "sleep"
