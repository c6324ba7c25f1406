def reach_slide_cabinet(view):
    """Stand in front of the left side of the handle, then go forward."""
    while True:
        aside = abs(offset(view, "slide_cabinet")[0] - 60) + abs(offset(view, "slide_cabinet")[2])
        if aside > 30:
            view = yield go(view, beside(view, "slide_cabinet", -60, -120, 0), fingers=CLOSE)
        else:
            view = yield go(view, beside(view, "slide_cabinet", -60, -30, 0), 20)
