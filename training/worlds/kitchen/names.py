"""Constants that the modules of this world share: the objects, the ranges of a command, the layout of the packed view.
Standard library only.

Positions are millimetres in the model's own frame: x to the right, y away from the robot into the kitchen, z upwards.
"""

from __future__ import annotations

import struct
from typing import NamedTuple


class Object(NamedTuple):
    """Something that a task moves. `joints` and `goal` are those of gymnasium-robotics 1.4.2 (`OBS_ELEMENT_INDICES`,
    `OBS_ELEMENT_GOALS` in envs/franka_kitchen/kitchen_env.py); a test compares them."""

    name: str
    site: str
    """Site of the model that marks the handle."""
    joints: tuple[int, ...]
    """Indices in `qpos`."""
    start: tuple[float, ...]
    """`qpos` of the nominal start, from which progress is counted."""
    goal: tuple[float, ...]
    doc: str


OBJECTS = (
    Object(
        "microwave", "microhandle_site", (22,), (0.0,), (-0.75,),
        "A microwave at the left. Its door is hinged at the left, 486 mm to the left of the handle and 37 mm nearer; "
        "the handle is an upright bar, 40 mm thick, 260 mm long. Pulled towards the robot, the door swings to the "
        "left. Done from 450 mrad: the handle is then 32 mm further left and 215 mm nearer.",
    ),
    Object(
        "kettle", "kettle_site", (23, 24, 25, 26, 27, 28, 29),
        (-0.269, 0.35, 1.619, 1.0, 0.0, 0.0, 0.0), (-0.23, 0.75, 1.62, 0.99, 0.0, 0.0, -0.06),
        "A kettle on the front left burner, free to be pushed or lifted. Its body is a box, 24 cm wide and deep and 12"
        " cm high; its spout points to the left. The handle is a bar along x, 64 mm thick, 200 mm long, 26 cm above "
        "the stove, on two upright legs 14 cm apart, with 11 cm free between it and the body. It belongs 40 cm further"
        " back and 4 cm further right. Done within 30 cm of there; a turn or tilt counts as distance too, at a right "
        "angle to the rest: 10 degrees as 9 cm, 40 as 34.",
    ),
    Object(
        "light_switch", "light_site", (17, 18), (0.0, 0.0), (-0.69, -0.05),
        "A lever, 42 mm thick, 60 mm long, which points at the robot; its tip is 45 mm nearer than its middle, and the"
        " front of the hood 59 mm behind it. It is pushed sideways, to the left, and turns about an upright axis 75 mm"
        " behind its tip and 31 mm to the left. Two knobs, above and below, begin 63 mm to its right. Done from 390 "
        "mrad.",
    ),
    Object(
        "slide_cabinet", "slide_site", (19,), (0.0,), (0.37,),
        "A sliding door above, at the right. The handle is an upright bar, 44 mm thick, 318 mm long, its middle 73 mm "
        "before the door; the door slides to the right. Done from 70 mm.",
    ),
    Object(
        "hinge_cabinet", "hinge_site2", (20, 21), (0.0, 0.0), (0.0, 1.45),
        "A cabinet with two doors above, at the left; the task is its right door. It is hinged at its right side, 302 "
        "mm to the right of the handle and 128 mm behind it. The handle is an upright bar, 44 mm thick, 320 mm long, "
        "its middle 83 mm before the doors, which meet 76 mm to its left and are 400 mm high. Pulled towards the "
        "robot, the door swings to the right; the left door must stay shut. Done from 1150 mrad: the handle is then "
        "295 mm further right and 200 mm nearer.",
    ),
    Object(
        "top_burner", "knob4_site", (15, 16), (0.0, 0.0), (-0.92, -0.01),
        "The upper left of four knobs on the wall. Its grip is a flat upright bar, 96 mm long, 28 mm wide, which "
        "reaches 4 cm out of the wall; it is turned clockwise as seen by the robot: its upper end goes to the right. "
        "Done from 620 mrad.",
    ),
    Object(
        "bottom_burner", "knob2_site", (11, 12), (0.0, 0.0), (-0.88, -0.01),
        "The lower left of four knobs on the wall, turned like the upper one.",
    ),
)  # fmt: skip
NAMES = tuple(each.name for each in OBJECTS)
INDEX = {name: index for index, name in enumerate(NAMES)}
THRESHOLD = 0.3
"""Stock's `BONUS_THRESH`: an object is done when its joints are closer than this to its goal (Euclidean)."""

REACHED, GRASPED, AJAR, DONE = range(4)
MILESTONES = tuple(
    milestone for name in NAMES for milestone in (f"{name}_reached", f"{name}_grasped", f"{name}_ajar", name)
)
"""Four milestones per object, in the order of the stages above; the last has the object's own name."""

MOVES, ROLLS, FINGER_COMMANDS = (0, -12, 12, -40, 40), (0, -100, 100), (0, 1, -1)
"""What the entries of the policy's heads mean: mm along an axis (three heads), mrad of roll, fingers."""
HEADS = (len(MOVES), len(MOVES), len(MOVES), len(ROLLS), len(FINGER_COMMANDS))
STEP, ROLL_STEP, FINGERS = 60, 200, 1
"""Largest part of a command: mm along each axis, mrad of roll, and fingers: 1 open, -1 close, 0 as they are."""
NATIVE_ACTION_SIZE = 5
LEASH = 60
"""The aim is never further than this (mm) from the hand, so that a push has a bounded force."""
MAX_ROLL = 1600
"""mrad."""
MAX_GAP = 80
"""mm between the fingers."""

VIEW = struct.Struct(f"<HH3h3hhBbBI{len(OBJECTS)}h{3 * len(OBJECTS)}h")
"""Env steps, env steps left, hand, aim (mm), roll (mrad), width of the gap between the fingers (mm), the last command
to the fingers, whether they hold something, milestones as bits, progress in thousandths, reported handles (mm)."""
