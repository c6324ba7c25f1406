def push_light_switch(view):
    """Push it to the left; where the hand passes it by, start over from the right, deeper, then higher and lower."""
    for deeper, higher in ((0, 0), (25, 0), (10, 25), (10, -25)):
        for _ in range(12):
            view = yield move(dx=-20)
        for _ in range(4):
            view = yield move(dy=-30)
        for closer in (-120, -30 + deeper):
            for _ in range(10):
                view = yield go(view, beside(view, "light_switch", 70, closer, higher))
