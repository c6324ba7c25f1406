def get(view, material):
    """The next primitive to collect one more of a material."""
    if view.front == material:
        return "do"
    step = approach(view, material, dig=True)
    if not step and material in ("coal", "iron", "diamond"):
        step = explore(view, "stone", "coal", "path", dig=True, bridge=True)
    return step or explore(view, material, dig=True, bridge=True) or explore(view, dig=True) or "noop"
