def by_night(view, material):
    """In the dark search underground only, and rest behind stone when tired, hurt or out of ways."""
    while dark(view):
        step = fight(view)
        if not step and material and view.health > 4 and view.energy > 2:
            step = "do" if view.front == material else approach(view, material, dig=True, avoid=("grass",))
            step = step or explore(view, "stone", "coal", "path", dig=True, avoid=("grass",))
        if not step:
            step = shelter(view)
            if step == "noop" and view.energy < 9:
                step = "sleep"
        if not step:
            return view
        view = yield step
    return view
