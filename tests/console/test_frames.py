"""Frames that a world draws itself: any width, any bytes."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from rlgpt.console.view import frames
from rlgpt.console.view.frames import drawn
from rlgpt.console.view.text import plain, width_of
from rlgpt.training.worlds.crafter import drawing, names
from rlgpt.training.worlds.crafter import frame as crafter_frame
from rlgpt.training.worlds.kitchen import frame

MODULE = "rlgpt.training.worlds.kitchen.frame"

LINKS = [0, 0, 1800, 0, 0, 1800, 0, 0, 2133, 0, 0, 2133, 0, 200, 2300, 0, 200, 2300, -100, 300, 2200, -200, 300, 2200]
HANDLES = [-642, 492, 1792, -269, 350, 1885, -369, 616, 2280, -108, 607, 2600, -526, 582, 2600, -256, 640, 2340]
HANDLES += [-256, 640, 2226]


def body(told=HANDLES, percent=(0, 0, 0, 0, 40, 0, 0), hand=(-400, 400, 2400), goals=(4,)):
    return frame.pack(
        7, 143, list(goals), 0b0011 << 16, -1, True, 44, LINKS, list(hand), HANDLES, list(told), list(percent)
    )


def text(width, height, **parts):
    return [plain(line) for line in drawn(MODULE, body(**parts), width, height, "follow_plan")]


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
    lines = drawn(MODULE, body(hand=(32_000, -32_000, 0)), width, height, "a decision with a very long name")
    assert lines
    assert all(width_of(line) <= width for line in lines)


@pytest.mark.parametrize("goals", [(4,), (0, 1, 2, 3)])
def test_in_the_pane_of_80x24_both_drawings_tell_heights_and_nothing_is_cut(goals):
    lines = text(40, 11, goals=goals)
    assert len(lines) <= 11 and "follow_plan" in lines[-1]
    assert "from above" in lines[0] and "from the side" in lines[0]
    assert sum(line.count("●") for line in lines) == 2


@pytest.mark.parametrize("hand", [(-400, -400, 2200), (32_000, -32_000, 0), (-400, 400, 9_000)])
def test_a_hand_outside_of_the_picture_is_drawn_at_its_edge(hand):
    assert sum(line.count("●") for line in text(100, 30, hand=hand)) == 2


def test_damaged_bytes_and_other_modules_are_not_drawn():
    assert drawn(MODULE, body()[:-1], 80, 24, "") is None
    assert drawn(MODULE, b"", 80, 24, "") is None
    assert drawn("rlgpt.training.worlds.crafter.drawing", body(), 80, 24, "") is None


@pytest.mark.parametrize(
    "name",
    [
        "", "this", "os.path", "../../etc", "rlgpt.training.worlds.", "rlgpt.training.worlds..crafter.drawing",
        "rlgpt.training.worlds.nowhere.frame", "rlgpt.console.view.frames", "rlgpt.training.worlds.crafter",
        "rlgpt.training.worlds.crafter.env",
    ],
)  # fmt: skip
def test_a_session_cannot_name_any_module_to_be_run(name):
    """A bundle comes from somebody else: only a module of an installed world that needs nothing else is loaded."""
    assert drawn(name, body(), 80, 24, "") is None


def test_the_world_is_not_imported_to_draw_its_frames():
    code = f"""
import sys
from rlgpt.console.view.frames import drawn
assert drawn({MODULE!r}, bytes.fromhex({body().hex()!r}), 80, 24, "")
print(*(name for name in sys.modules if name.startswith("rlgpt.training")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.strip()


def installed(monkeypatch, tmp_path, text):
    """A world of another package, whose drawing module has this text."""
    package = f"acme_{tmp_path.name.replace('-', '_')}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("raise ImportError('the world needs what is not here')")
    (tmp_path / package / "pictures.py").write_text(text)
    point = EntryPoint("acme", f"{package}.world:make", frames.GROUP)
    monkeypatch.setattr(frames, "entry_points", lambda group: [point])
    monkeypatch.syspath_prepend(tmp_path)
    return f"{package}.pictures"


def test_a_world_of_another_package_draws_its_frames_where_it_cannot_be_imported(monkeypatch, tmp_path):
    text = "def draw(body, width, height, decision):\n    return [[(body.decode(), 'ok'), (decision, 'dim')]]\n"
    (line,) = drawn(installed(monkeypatch, tmp_path, text), b"hello", 7, 4, "walk")
    assert plain(line) == "hellow…"


@pytest.mark.parametrize(
    "text",
    [
        "import numpy\ndef draw(*_): return [[('x', '')]]", "from . import world\ndef draw(*_): return [[('x', '')]]",
        "def draw(*_): return 1 / 0", "def draw(*_): return [[7]]", "def draw(*_): return 7", "1 / 0", "def draw(", "",
    ],
)  # fmt: skip
def test_a_drawing_module_that_fails_does_not_end_the_console(monkeypatch, tmp_path, text):
    assert drawn(installed(monkeypatch, tmp_path, text), b"hello", 80, 24, "") is None


def test_the_drawing_of_crafter_knows_the_layout_of_its_frames():
    senses = bytearray(names.SENSES)
    senses[names.AT_X], senses[names.AT_Y], senses[names.AT_FACING] = 12, 34, 2
    senses[names.AT_STEPS], senses[names.AT_STEPS_LEFT + 1] = 7, 1
    senses[names.AT_ITEMS + names.ITEMS.index("iron_sword")] = 3
    senses[names.AT_ACHIEVED] = 1 << names.ACHIEVEMENTS.index("collect_stone")
    senses[names.AT_MATERIALS] = names.MATERIALS.index("diamond")
    senses[names.AT_OBJECTS + 62] = names.OBJECTS.index("zombie")
    window = drawing.read(crafter_frame.pack_frame(bytes(senses)))
    assert (window.x, window.y, window.facing, window.steps, window.steps_left) == (12, 34, 2, 7, 256)
    assert window.items[drawing.ITEMS.index("iron_sword")] == 3 and window.achieved == ("collect_stone",)
    cells = drawing.cell_names(window)
    assert (cells[0], cells[-1], set(cells[1:-1])) == ("diamond", "zombie", {"unknown"})
    assert (drawing.WIDTH, drawing.HEIGHT) == (names.WIDTH, names.HEIGHT)
    assert drawing.NAMES[1:] == names.CATEGORIES[1:]
    assert (tuple(names.ITEMS), tuple(names.ACHIEVEMENTS)) == (drawing.ITEMS, drawing.ACHIEVEMENTS)
