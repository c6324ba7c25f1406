def weary(view):
    """Whether the rest of the episode is long enough to sleep, and the agent tired or hurt enough."""
    deep_night = view.daylight < 0.2 and view.energy < 6
    return view.steps_left > 90 and view.energy < 8 and (view.health < 4 or view.energy < 1 or deep_night)


def by_night(view, material):
    """In the dark search on, off the grass where zombies come from if that leads anywhere; sleep behind stone."""
    while dark(view):
        step = fight(view)
        if not step and material and not weary(view):
            if view.front == material:
                step = "do"
            for ground in (("grass",), ()):
                step = step or approach(view, material, dig=True, bridge=True, avoid=ground)
            for ground in (("grass",), ()):
                step = step or scout(view, "stone", "coal", "iron", "path", dig=True, bridge=True, avoid=ground)
        if not step:
            step = shelter(view)
            if step == "noop" and view.energy < 9:
                step = "sleep"
        if not step:
            return view
        view = yield step
    return view
