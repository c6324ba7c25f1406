"""Kitchen's tasks: each of the seven objects, the chain of four, each again with wrong reported handles, and once more
so with places told in the robot's own frame."""

from __future__ import annotations

from typing import Any

from rlgpt.training.worlds.kitchen.names import NAMES
from rlgpt.training.worlds.protocol import Task

BLIND = 0.02
"""Standard deviation (m) along each axis of the error of each reported handle in a `_blind2` task, drawn once per
episode."""
ROBOT_FRAME = "_robot"
"""End of the name of a task whose places are told in the robot's own frame. The furniture never moves, so in the
kitchen's frame its handles can be learnt by heart, however wrong what is said about them; the robot stands elsewhere in
every episode."""
CHAIN = "kitchen_complete"
CHAIN_OF_FOUR = ("microwave", "kettle", "light_switch", "slide_cabinet")
"""In the order of D4RL's kitchen-complete-v0 (Fu et al. 2020)."""
_PROMPTS = {
    "microwave": "Open the door of the microwave.",
    "kettle": "Move the kettle to the back burner.",
    "light_switch": "Switch the light on.",
    "slide_cabinet": "Slide the door of the right cabinet open.",
    "hinge_cabinet": "Open the right door of the hinge cabinet.",
    "top_burner": "Turn the knob of the top burner.",
    "bottom_burner": "Turn the knob of the bottom burner.",
}
_GRASPED_OBJECTS = ("microwave", "kettle", "hinge_cabinet")
"""Objects that are usually moved by a grasped handle; the others are pushed. Used for the milestones of a task."""
HORIZON, CHAIN_HORIZON = 150, 500
"""Env steps of 80 ms."""


def _stages(name: str) -> tuple[str, ...]:
    stages = ("reached", "grasped", "ajar") if name in _GRASPED_OBJECTS else ("reached", "ajar")
    return (*(f"{name}_{stage}" for stage in stages), name)


def _tasks(suffix: str, start: dict[str, Any]) -> dict[str, Task]:
    blind_note = " What is said about the places of handles is wrong by a few centimetres." if start else ""
    single = [
        Task(f"{name}{suffix}", _PROMPTS[name] + blind_note, HORIZON, _stages(name), start=start) for name in NAMES
    ]
    chain = Task(
        f"{CHAIN}{suffix}",
        "Open the microwave, move the kettle back, switch the light on and slide the right cabinet open." + blind_note,
        CHAIN_HORIZON,
        (*CHAIN_OF_FOUR, CHAIN),
        long_horizon=True,
        sub_tasks=tuple(f"{name}{suffix}" for name in CHAIN_OF_FOUR),
        start=start,
    )
    return {task.id: task for task in (*single, chain)}


TASKS: dict[str, Task] = (
    _tasks("", {})
    | _tasks("_blind2", {"blind": BLIND})
    | _tasks(f"_blind2{ROBOT_FRAME}", {"blind": BLIND, "robot_frame": True})
)


def objects_of(task: Task) -> tuple[str, ...]:
    """The objects that a task moves, in their order."""
    name = task.id.removesuffix(ROBOT_FRAME).removesuffix("_blind2")
    return CHAIN_OF_FOUR if name == CHAIN else (name,)
