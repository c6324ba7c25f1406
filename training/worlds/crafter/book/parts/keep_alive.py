def dark(view):
    return view.daylight < (0.35 if view.steps % 300 < 210 else 0.6)


def lasts(view):
    """Whether the agent lives to the end with all needs at 0, which takes a health in 16 env steps."""
    return view.health * 16 > view.steps_left + 40


def near_diamond(view):
    """Whether a diamond can be mined soon, which comes before food and drink."""
    if not view.inventory["iron_pickaxe"]:
        return False
    far = steps_to(view, "diamond", dig=True, bridge=True)
    return far is not None and far <= 12


def hunt(view):
    """Up to a skeleton two cells away in a straight line: next to it it is hit, from afar it shoots."""
    if view.health < 4 or not (view.inventory["stone_sword"] or view.inventory["iron_sword"]):
        return None
    for name, dx, dy in view.objects:
        straight = abs(dx) + abs(dy) == 2 and 0 in (dx, dy)
        if name == "skeleton" and straight and view.at(dx // 2, dy // 2) in ("grass", "sand", "path"):
            return towards(dx, dy)
    return None


def thirsty(view, night):
    if view.front == "water" and view.drink < 9:
        return "do"
    far = steps_to(view, "water", dig=True)
    if far is None:
        return explore(view, dig=True, bridge=True) if view.drink < 2 else None
    evening = 120 <= view.steps % 300 < 200 and view.drink < 7 and far <= 10
    if view.drink < (1 if night else 5) or far <= 3 and view.drink < 7 or evening:
        return approach(view, "water", dig=True)
    return None


def hungry(view, night):
    if view.food > 6 or night and view.food > 0:
        return None
    if view.front == "cow":
        return "do"
    far = steps_to(view, "cow")
    if far is None:
        return explore(view, "grass") if not night and view.food < 3 else None
    return approach(view, "cow") if far <= 6 or view.food < 5 else None


def keep_alive(view):
    """Fight what is near; drink and eat what is near, or in time, unless it is no longer needed."""
    while True:
        step = fight(view) or hunt(view)
        if not step and not lasts(view) and not near_diamond(view):
            night = dark(view)
            step = thirsty(view, night) or hungry(view, night)
        if not step:
            return view
        view = yield step
