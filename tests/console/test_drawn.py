"""Frames that a world draws itself: any width, any bytes."""

import pytest

from rlgpt.console.view.drawn import drawn
from rlgpt.console.view.text import plain, width_of
from rlgpt.training.worlds.kitchen import frame

LINKS = [0, 0, 1800, 0, 0, 1800, 0, 0, 2133, 0, 0, 2133, 0, 200, 2300, 0, 200, 2300, -100, 300, 2200, -200, 300, 2200]
HANDLES = [-642, 492, 1792, -269, 350, 1885, -369, 616, 2280, -108, 607, 2600, -526, 582, 2600, -256, 640, 2340]
HANDLES += [-256, 640, 2226]


def body(told=HANDLES, percent=(0, 0, 0, 0, 40, 0, 0), hand=(-400, 400, 2400), goals=(4,)):
    return frame.pack(
        7, 143, list(goals), 0b0011 << 16, -1, True, 44, LINKS, list(hand), HANDLES, list(told), list(percent)
    )


def text(width, height, **parts):
    return [plain(line) for line in drawn(frame.FORMAT, body(**parts), width, height, "follow_plan")]


def test_the_task_s_object_the_hand_and_the_state_are_shown():
    lines = text(100, 30)
    assert "from above" in lines[0]
    assert "from the side" in lines[0]
    assert sum(line.count("●") for line in lines) == 2
    assert any("hinge cabinet" in line and "40%" in line and "reached, grasped" in line for line in lines)
    assert any("env step 7, 143 left, fingers 44 mm apart, holds something" in line for line in lines)
    assert any("follow_plan" in line for line in lines)


def test_where_a_handle_is_said_to_be_is_marked_only_where_that_is_wrong():
    wrong = [value + 60 if index // 3 == 4 else value for index, value in enumerate(HANDLES)]
    assert not any("×" in line for line in text(100, 30))
    assert any("×" in line for line in text(100, 30, told=wrong))


@pytest.mark.parametrize("width", [1, 2, 5, 20, 63, 64, 80, 200])
@pytest.mark.parametrize("height", [0, 1, 8, 24, 60])
def test_no_line_is_wider_than_the_pane(width, height):
    lines = drawn(frame.FORMAT, body(hand=(32_000, -32_000, 0)), width, height, "a decision with a very long name")
    assert lines
    assert all(width_of(line) <= width for line in lines)


def test_damaged_bytes_and_other_formats_are_not_drawn():
    assert drawn(frame.FORMAT, body()[:-1], 80, 24, "") is None
    assert drawn(frame.FORMAT, b"", 80, 24, "") is None
    assert drawn("crafter-window-1", body(), 80, 24, "") is None
    assert drawn("../../etc", body(), 80, 24, "") is None
