def get(view, material):
    """The next primitive to collect one more of a material; before an iron a coal that is nearer."""
    if material == "iron" and not view.inventory["coal"]:
        coal, iron = steps_to(view, "coal", dig=True), steps_to(view, "iron", dig=True)
        if coal is not None and coal < (10 if iron is None else iron):
            material = "coal"
    if view.front == material:
        return "do"
    step = approach(view, material, dig=True)
    if not step and material in ("coal", "iron", "diamond"):
        step = approach(view, material, dig=True, bridge=True)
        step = step or scout(view, "stone", "coal", "iron", "path", dig=True, bridge=True)
    return step or explore(view, material, dig=True, bridge=True) or explore(view, dig=True) or "noop"
