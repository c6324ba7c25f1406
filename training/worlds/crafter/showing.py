"""Shows a view of a lost episode as a line of a timeline and as a picture of characters. Standard library only."""

from __future__ import annotations

from typing import Any

from rlgpt.training.worlds.crafter import names
from rlgpt.training.worlds.crafter.view import View

MARKS = {
    "unknown": " ", "water": "~", "grass": ".", "stone": "#", "path": "_", "sand": ",", "tree": "T", "lava": "!",
    "coal": "c", "iron": "i", "diamond": "d", "table": "t", "furnace": "f", "cow": "C", "zombie": "Z", "skeleton": "S",
    "arrow_left": "<", "arrow_right": ">", "arrow_up": "^", "arrow_down": "v", "sapling": "p", "ripe_plant": "P",
}  # fmt: skip
AGENT = "@"


def moment(view: View) -> dict[str, Any]:
    """See `optional_parts.ShowsMoments`."""
    line: dict[str, Any] = {"at": list(view.position), "health": view.health, "food": view.food, "drink": view.drink}
    line |= {"energy": view.energy, "daylight": round(view.daylight, 2)}
    if view.sleeping:
        line["asleep"] = True
    line["holds"] = {name: count for name, count in view.inventory.items() if count}
    near = [f"{name} {dx:+d},{dy:+d}" for name, dx, dy in view.objects if name not in ("cow", "sapling")]
    if near:
        line["near"] = near[:3]
    return line


def picture(view: View) -> str:
    """See `optional_parts.DrawsViews`: the window, north up, with the agent in the middle."""
    cells = [
        [view.at(dx, dy) for dx in range(-names.REACH_X, names.REACH_X + 1)]
        for dy in range(-names.REACH_Y, names.REACH_Y + 1)
    ]
    rows = ["".join(MARKS[name] for name in row) for row in cells]
    middle = rows[names.REACH_Y]
    rows[names.REACH_Y] = middle[: names.REACH_X] + AGENT + middle[names.REACH_X + 1 :]
    names_shown = sorted({name for row in cells for name in row if name != "unknown"}, key=list(MARKS).index)
    legend = ", ".join(f"{MARKS[name]} {name}" for name in names_shown)
    return "\n".join([*rows, f"{AGENT} the agent, facing {view.facing}; {legend}"])
