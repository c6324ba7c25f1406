"""The world sheet: what agents are told about the kitchen."""

from __future__ import annotations

import inspect
from typing import Any

from rlgpt.training.worlds.kitchen import names
from rlgpt.training.worlds.kitchen.library import LIBRARY
from rlgpt.training.worlds.kitchen.scripts import scripts_for
from rlgpt.training.worlds.kitchen.tasks import BLIND, CHAIN, objects_of
from rlgpt.training.worlds.kitchen.view import View
from rlgpt.training.worlds.protocol import Primitive, Task
from rlgpt.training.worlds.script_book import entries

_HOLD = (
    "Hold the aim's x. The policy acts with five heads at once: the aim along x (these five actions), along y and "
    "along z (alike), roll 0, -100 or 100 mrad, fingers kept, opened or closed. Code yields what `move` or `go` give, "
    "no name."
)
PRIMITIVES = (
    Primitive("x_hold", _HOLD),
    *(
        Primitive(f"x_{'minus' if step < 0 else 'plus'}_{abs(step)}",
                  f"Move the aim {abs(step)} mm to the {'left' if step < 0 else 'right'}.")
        for step in names.MOVES[1:]
    ),
)  # fmt: skip
"""The actions of the policy's first head; the other four heads act in the same env step."""
_HAND = (
    "at roll 0: each finger reaches 51 mm ahead of the hand, is 40 mm high and 20 to 30 mm wide; open they span some "
    "130 mm outside, closed 50. From 37 mm behind the hand on its body is 200 mm wide and 64 mm high"
)
"""Read off the shapes that collide in franka_assets/chain.xml, from the site of the hand."""
_STAGES = {
    "reached": "the grip, 3 cm ahead of the hand, came within 5 cm of the true middle of its handle",
    "grasped": "`view.holding` was true while the grip was that near; a bar can be held elsewhere too",
    "ajar": "it was a fifth of the way to its goal",
}
MAX_OPTION_STEPS = 8
ADVISED_RL = {
    "plan_prior": 0.65, "primitive_steps": 2, "rollout": 4096, "learning_rate": 3e-4, "gamma": 0.995, "n_epochs": 10,
    "batch_size": 64, "target_kl": 0.03, "width": 128, "env_steps": 409_600,
}  # fmt: skip
"""The configuration with which hinge cabinet and microwave were learnt (docs/kitchen.md). With a lower plan_prior the
hand lets go of what it holds, because an action outside the plan opens the fingers. With half of the env steps the
training success was still rising, 0.70 and 0.76; with these it was 0.91 and 0.87."""


def view_doc() -> str:
    """One line per attribute of the view, from its own docstrings."""
    lines = []
    for name, member in vars(View).items():
        if name.startswith("_"):
            continue
        text = " ".join((inspect.getdoc(member) or "").split())
        call = f"{name}{inspect.signature(member, eval_str=True)}".replace("self, ", "") if callable(member) else name
        lines.append(f"view.{call}: {text}")
    return "\n".join(lines)


def library_doc() -> str:
    """One line per function, then the constants."""
    lines = []
    for name, function in LIBRARY.items():
        if callable(function):
            text = " ".join((inspect.getdoc(function) or "").split())
            lines.append(f"{name}{inspect.signature(function, eval_str=True)}: {text}")
    lines.append("OPEN, CLOSE, KEEP: 1, -1 and 0, for `fingers`.")
    return "\n".join(lines).replace("view: object", "view").replace("point: object", "point")


def _dangers(task: Task) -> list[str]:
    dangers = [
        "Contact: the hand stops at what is in its way, and pushing harder pushes it aside; `view.lag` tells.",
        "Grip: what is held slips out when it is pulled aside. The alarm of this world is that `view.holding` turns "
        "false while the fingers are told to close; opening them raises none. A grip that has just closed may flicker "
        "so: code that looks itself whether it lost the handle sets `ignore_alarm = True`.",
        "The hand always points forward (along y), whatever the door does; it can only roll about its own axis.",
        "Reach: the arm reaches from about x -0.9 to 0.5 m, y up to 0.75 m, z 1.6 to 2.8 m, less at the corners. Low "
        "down it reaches less far: at x -270 to y 265 at z 1690, to 285 at 1750, beyond 300 from 1850. A hand that is "
        "blocked by its arm looks like one that pushes.",
    ]
    if task.start.get("blind"):
        dangers.append(
            f"Handles are said to be where they are not: each is wrong by a random offset, {1000 * BLIND:.0f} mm "
            "(one standard deviation) along each axis, the same for a whole episode. Progress and touch are true."
        )
    if task.start.get("robot_frame"):
        dangers.append(
            "Places are told as the robot measures them from where it stands, in every episode up to 3 cm elsewhere "
            "along x and y: the same handle is told at another place each time, even without its error."
        )
    return dangers


def _milestone(name: str) -> dict[str, str]:
    each, _, stage = name.rpartition("_")
    if name == CHAIN:
        doc = "each of the four objects was at its goal"
    elif stage in _STAGES:
        doc = f"{each.replace('_', ' ')}: {_STAGES[stage]}"
    else:
        doc = f"{name.replace('_', ' ')}: it was within the threshold of its goal"
    return {"name": name, "doc": doc, "done_when": f'"{name}" in view.reached'}


def _milestones(task: Task) -> tuple[str, ...]:
    """The task's own, then the others of its objects."""
    stages = (f"{name}_{stage}" for name in objects_of(task) for stage in _STAGES)
    return tuple(dict.fromkeys((*task.milestones, *stages)))


def sheet(task: Task) -> dict[str, Any]:
    """See `protocol.World.sheet`."""
    return {
        "items": [{"name": each.name, "doc": each.doc} for each in names.OBJECTS],
        "recipes": [],
        "primitives": [{"name": primitive.name, "doc": primitive.doc} for primitive in PRIMITIVES],
        "view_doc": view_doc(),
        "library_doc": library_doc(),
        "dangers": _dangers(task),
        "milestones": [_milestone(name) for name in _milestones(task) if name != CHAIN or task.sub_tasks],
        "scripts": entries(scripts_for(task)),
        "limits": {
            "horizon": task.horizon,
            "option_cap": MAX_OPTION_STEPS,
            "env_step": "80 ms",
            "hand": _HAND,
            "command": f"dx, dy, dz up to {names.STEP} mm, roll up to {names.ROLL_STEP} mrad, fingers 1, 0 or -1",
            "axes": "x to the right, y away from the robot, z up",
            "units": "mm, and mrad of roll; env steps of 80 ms. `sin`, `cos` and `atan2` take and give radians",
            "numbers": "there is no `**`, `abs` and `round` are there; sqrt, sin, cos and atan2 are in the library",
        },
        "advised_rl": ADVISED_RL,
    }
