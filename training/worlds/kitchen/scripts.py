"""The script book: an entry for each sub-action, in the order in which a plan would hold them.

The sources are the files in `book/`: first the shortest that a programmer would write, then a version that tries again,
then one repair for each kind of failure that is reported. They keep no state between calls: an option ends after a few
env steps and is called again, so every version reads from the view how far it has come.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rlgpt.training.worlds.kitchen.tasks import CHAIN, objects_of
from rlgpt.training.worlds.protocol import Script, Task
from rlgpt.training.worlds.script_book import read_versions

BOOK = Path(__file__).parent / "book"


def _script(name: str, goal: str, done_when: str, needs: tuple[str, ...], gives: tuple[str, ...]) -> Script:
    return Script(name, goal, done_when, read_versions(BOOK, name), needs, gives)


def _in_words(name: str) -> str:
    return name.replace("_", " ")


def _any_reached(name: str, *stages: str) -> str:
    """The predicate that the object or one of its stages was reached."""
    return " or ".join(f'"{milestone}" in view.reached' for milestone in (name, *(f"{name}_{s}" for s in stages)))


def _holding_at(name: str) -> str:
    return f'view.holding and distance(view, beside(view, "{name}", 0, -30, 0)) < 70'


def _near(name: str, dx: int, dy: int, dz: int) -> str:
    return f'distance(view, beside(view, "{name}", {dx}, {dy}, {dz})) < 25'


def _grasp(name: str, handle: str, *stages: str) -> Script:
    """The grip is not needed any more once one of `stages` is reached."""
    goal = f"Take hold of the {handle}: have the {_in_words(name)} grasped."
    return _script(
        f"grasp_{name}", goal, f"{_any_reached(name, *stages)} or {_holding_at(name)}",
        (), (f"{name}_reached", f"{name}_grasped"),
    )  # fmt: skip


def _reach(name: str, goal: str, place: str) -> Script:
    goal = f"{goal}: have the {_in_words(name)} reached."
    return _script(f"reach_{name}", goal, f"{_any_reached(name, 'ajar')} or {place}", (), (f"{name}_reached",))


def _finish(verb: str, name: str, goal: str, needs: str) -> Script:
    return _script(f"{verb}_{name}", goal, _any_reached(name), (needs,), (f"{name}_ajar", name))


_SCRIPTS_OF: dict[str, tuple[Script, ...]] = {
    "microwave": (
        _grasp("microwave", "handle of the microwave", "ajar"),
        _finish("open", "microwave", "Open the door of the microwave.", "grasp_microwave"),
    ),
    "kettle": (
        _grasp("kettle", "handle of the kettle"),
        _finish("carry", "kettle", "Lift the kettle and carry it to the back burner.", "grasp_kettle"),
    ),
    "light_switch": (
        _reach("light_switch", "Bring the hand to the right side of the lever", _near("light_switch", 70, -30, 0)),
        _finish("push", "light_switch", "Push the lever of the light switch to the left.", "reach_light_switch"),
    ),
    "slide_cabinet": (
        _reach("slide_cabinet", "Bring the hand to the left side of the handle", _near("slide_cabinet", -60, -30, 0)),
        _finish("push", "slide_cabinet", "Push the door of the slide cabinet to the right.", "reach_slide_cabinet"),
    ),
    "hinge_cabinet": (
        _grasp("hinge_cabinet", "handle of the right door of the hinge cabinet", "ajar"),
        _script(
            "pull_hinge_cabinet", "Pull the door a fifth open.", _any_reached("hinge_cabinet", "ajar"),
            ("grasp_hinge_cabinet",), ("hinge_cabinet_ajar",),
        ),
        _script(
            "swing_hinge_cabinet", "Swing the door of the hinge cabinet open.", _any_reached("hinge_cabinet"),
            ("pull_hinge_cabinet",), ("hinge_cabinet",),
        ),
    ),
    "top_burner": (
        _grasp("top_burner", "knob of the top burner"),
        _finish("twist", "top_burner", "Turn the knob of the top burner.", "grasp_top_burner"),
    ),
    "bottom_burner": (
        _grasp("bottom_burner", "knob of the bottom burner"),
        _finish("twist", "bottom_burner", "Turn the knob of the bottom burner.", "grasp_bottom_burner"),
    ),
}  # fmt: skip


def scripts_for(task: Task) -> tuple[Script, ...]:
    """The scripts of a task's objects. The last script of the chain also gives the chain's own milestone."""
    task_objects = objects_of(task)
    scripts = [script for name in task_objects for script in _SCRIPTS_OF[name]]
    if len(task_objects) > 1:
        scripts[-1] = replace(scripts[-1], gives=(*scripts[-1].gives, CHAIN))
    return tuple(scripts)
