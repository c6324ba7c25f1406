def reach_light_switch(view):
    """Stand in front of the right side of the lever, then go forward."""
    while True:
        aside = abs(offset(view, "light_switch")[0] + 70) + abs(offset(view, "light_switch")[2])
        if aside > 30:
            view = yield go(view, beside(view, "light_switch", 70, -120, 0), fingers=CLOSE)
        else:
            view = yield go(view, beside(view, "light_switch", 70, -30, 0), 20)
