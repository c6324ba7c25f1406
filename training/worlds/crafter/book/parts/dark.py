def dark(view):
    return view.daylight < (0.35 if view.steps % 300 < 210 else 0.6)
