"""Draws Crafter's stored window, which is what the agent sees, as coloured tiles. Standard library only.

The console loads this file by its path (see `protocol.FrameSide`), so it cannot import `frame.py` and repeats the
constants of its layout; a test compares the two.
"""

from __future__ import annotations

import textwrap
from typing import NamedTuple

Row = list[tuple[str, str]]
"""Texts and their styles (words of the console's palette)."""
WIDTH, HEIGHT = 9, 7
CENTRE = WIDTH // 2 + WIDTH * (HEIGHT // 2)
_CELLS = 27
SIZE = _CELLS + WIDTH * HEIGHT + 2
MATERIALS = (
    "unknown",
    "water",
    "grass",
    "stone",
    "path",
    "sand",
    "tree",
    "lava",
    "coal",
    "iron",
    "diamond",
    "table",
    "furnace",
)
BEINGS = ("cow", "zombie", "skeleton", "arrow_left", "arrow_right", "arrow_up", "arrow_down", "sapling", "ripe_plant")
NAMES = MATERIALS + BEINGS
_UNDER = {"cow": "grass", "zombie": "grass", "sapling": "grass", "ripe_plant": "grass"}
"""A frame does not say what a being stands on: its background is the ground where such beings live, else a path."""
ITEMS = (
    "health",
    "food",
    "drink",
    "energy",
    "sapling",
    "wood",
    "stone",
    "coal",
    "iron",
    "diamond",
    "wood_pickaxe",
    "stone_pickaxe",
    "iron_pickaxe",
    "wood_sword",
    "stone_sword",
    "iron_sword",
)
VITALS = 4
NIGHT = 0.35
"""Daylight below which it is night."""
ACHIEVEMENTS = (
    "collect_coal",
    "collect_diamond",
    "collect_drink",
    "collect_iron",
    "collect_sapling",
    "collect_stone",
    "collect_wood",
    "defeat_skeleton",
    "defeat_zombie",
    "eat_cow",
    "eat_plant",
    "make_iron_pickaxe",
    "make_iron_sword",
    "make_stone_pickaxe",
    "make_stone_sword",
    "make_wood_pickaxe",
    "make_wood_sword",
    "place_furnace",
    "place_plant",
    "place_stone",
    "place_table",
    "wake_up",
)
_AGENT = ("◀", "▶", "▲", "▼")
_GLYPHS: dict[str, tuple[str, str]] = {
    "unknown": (" ", " "),
    "water": ("~", "≈"),
    "grass": (" ", "'"),
    "stone": ("▒", "░"),
    "path": (" ", "·"),
    "sand": (" ", "∙"),
    "tree": ("♣", "♠"),
    "lava": ("≈", "~"),
    "coal": ("•", "▒"),
    "iron": ("◆", "▒"),
    "diamond": ("◇", "▒"),
    "table": ("╥", "▔"),
    "furnace": ("▣", "▔"),
    "cow": ("c", "_"),
    "zombie": ("z", "_"),
    "skeleton": ("s", "_"),
    "arrow_left": ("←", " "),
    "arrow_right": ("→", " "),
    "arrow_up": ("↑", " "),
    "arrow_down": ("↓", " "),
    "sapling": ("♀", " "),
    "ripe_plant": ("✿", " "),
}
"""(main glyph, texture) of what a cell shows."""


class Window(NamedTuple):
    x: int
    y: int
    facing: int
    sleeping: bool
    daylight: float
    """0 night .. 1 day."""
    steps: int
    steps_left: int
    items: tuple[int, ...]
    achieved: tuple[str, ...]
    cells: bytes


def read(body: bytes) -> Window | None:
    """None when the bytes are no such window."""
    if len(body) < SIZE or body[0] != 1:
        return None
    unlocked = int.from_bytes(body[24:27], "little")
    return Window(
        body[1],
        body[2],
        body[3] % 4,
        bool(body[4]),
        body[5] / 255,
        int.from_bytes(body[6:8], "little"),
        int.from_bytes(body[SIZE - 2 : SIZE], "little"),
        tuple(body[8:24]),
        tuple(name for bit, name in enumerate(ACHIEVEMENTS) if unlocked >> bit & 1),
        body[_CELLS : SIZE - 2],
    )


def state(body: bytes) -> dict[str, int]:
    """See `optional_parts.TellsState`: the vitals and the inventory."""
    window = read(body)
    return {} if window is None else dict(zip(ITEMS, window.items, strict=True))


def cell_names(window: Window) -> list[str]:
    """The name of what each of the 63 cells shows; codes that this version does not know are `unknown`."""
    return [NAMES[code] if code < len(NAMES) else "unknown" for code in window.cells]


def tile_size(width: int, height: int) -> tuple[int, int]:
    """The largest tile (columns, rows of terminal cells) whose window fits; never below 2 x 1."""
    for columns, rows in ((8, 4), (6, 3), (4, 2)):
        if columns * WIDTH <= width and rows * HEIGHT <= height:
            return columns, rows
    return 2, 1


def draw(body: bytes, width: int, height: int, decision: str = "") -> list[Row] | None:
    """The window in tiles, as large as they fit, and the state in words; None where the bytes are no such frame."""
    window = read(body)
    if window is None:
        return None
    words = _words(window, decision, width)
    return [*_tiles(window, tile_size(width, height - len(words))), *words]


def _tiles(window: Window, tile: tuple[int, int]) -> list[Row]:
    """The window as rows of tiles, in darker colours at night."""
    wide, tall = tile
    names = cell_names(window)
    night = " night" if window.daylight < NIGHT else ""
    lines: list[Row] = []
    for row in range(HEIGHT):
        for part in range(tall):
            spans = []
            for column in range(WIDTH):
                index = row * WIDTH + column
                name = names[index]
                ground = name if name in MATERIALS else _UNDER.get(name, "path")
                if index == CENTRE:
                    glyph, texture, who = ("☾" if window.sleeping else _AGENT[window.facing]), " ", "agent"
                else:
                    (glyph, texture), who = _GLYPHS[name], name
                spans.append((_tile(glyph, texture, wide, tall, part, index), f"tile_{who} on_{ground}{night}"))
            lines.append(spans)
    return lines


def _tile(main: str, texture: str, wide: int, tall: int, part: int, index: int) -> str:
    cells = [" "] * wide
    if part == tall // 2 if tall > 1 else True:
        cells[(wide - 1) // 2] = main
        if wide == 2 and main in "▒≈~":
            cells[1] = main
    if tall > 1 and texture.strip():
        spot = (index * 7 + part * 3) % wide
        if cells[spot] == " ":
            cells[spot] = texture
    return "".join(cells)


def _words(window: Window, decision: str, width: int) -> list[Row]:
    """Vitals, inventory, achievements and the decision in force."""
    vitals: Row = []
    for name, glyph, style, value in zip(
        ("health", "food", "drink", "energy"), "♥◒◍✦", ("bad", "warn", "curve4", "curve3"), window.items, strict=False
    ):
        vitals += [(f"{glyph} ", style), (f"{value}", "bold" if value > 3 else "bad bold"), (f" {name}  ", "dim")]
    carried = [(n, v) for n, v in zip(ITEMS[VITALS:], window.items[VITALS:], strict=True) if v]
    words = " ".join(f"{n.replace('_', ' ')} {v}" for n, v in carried) or "nothing"
    done = ", ".join(a.replace("_", " ") for a in window.achieved) or "nothing yet"
    hour = "night" if window.daylight < NIGHT else "dusk" if window.daylight < 0.7 else "day"
    doing = "asleep" if window.sleeping else f"facing {('left', 'right', 'up', 'down')[window.facing]}"
    state = f"env step {window.steps}, {window.steps_left} left, at {window.x},{window.y}, {doing}, {hour}"
    lines = [vitals, *_wrapped(f"carries {words}", width, "", 2), *_wrapped(f"achieved {done}", width, "dim", 3)]
    lines.append([(state, "dim")])
    if decision:
        lines.append([("decision ", "dim"), (decision, "accent bold")])
    return lines


def _wrapped(text: str, width: int, style: str, most: int) -> list[Row]:
    """At most `most` lines, the last with an ellipsis."""
    room = max(width, 8)
    lines = textwrap.wrap(text, room)
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: room - 1] + "…"]
    return [[(shown, style)] for shown in lines]
