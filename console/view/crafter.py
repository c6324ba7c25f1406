"""Crafter's stored window as coloured tiles: what the agent sees, never more.

The bytes are the frame format `crafter-window-1` of the embedded world, documented in its `frame.py`: 27 bytes of
scalars, 63 cells row by row, steps left. The console knows the layout, not the world.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlgpt.console.view.text import Line, Span, fit, line, wrap

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
"""A being hides what it stands on: its colour is that of where such beings live, else a path."""
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


@dataclass(frozen=True)
class Window:
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


def cell_names(window: Window) -> list[str]:
    """What each cell shows; codes of a newer world are `unknown`."""
    return [NAMES[code] if code < len(NAMES) else "unknown" for code in window.cells]


def tile_size(width: int, height: int) -> tuple[int, int]:
    """The largest tile (columns, rows of terminal cells) whose window fits; never below 2 x 1."""
    for columns, rows in ((8, 4), (6, 3), (4, 2)):
        if columns * WIDTH <= width and rows * HEIGHT <= height:
            return columns, rows
    return 2, 1


def draw(window: Window, tile: tuple[int, int]) -> list[Line]:
    """The window in tiles. At night the colours are the night's."""
    wide, tall = tile
    names = cell_names(window)
    night = " night" if window.daylight < 0.35 else ""
    lines: list[Line] = []
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
                spans.append(Span(_tile(glyph, texture, wide, tall, part, index), f"tile_{who} on_{ground}{night}"))
            lines.append(tuple(spans))
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


def state_lines(window: Window, decision: str, width: int) -> list[Line]:
    """Vitals, inventory, achievements and the decision in force."""
    lines: list[Line] = []
    vitals: list[Span] = []
    for name, glyph, style, value in zip(
        ("health", "food", "drink", "energy"), "♥◒◍✦", ("bad", "warn", "curve4", "curve3"), window.items, strict=False
    ):
        vitals += [
            Span(f"{glyph} ", style),
            Span(f"{value}", "bold" if value > 3 else "bad bold"),
            Span(f" {name}  ", "dim"),
        ]
    lines.append(fit(vitals, width))
    carried = [(n, v) for n, v in zip(ITEMS[VITALS:], window.items[VITALS:], strict=True) if v]
    words = "  ".join(f"{n.replace('_', ' ')} {v}" for n, v in carried) or "nothing"
    lines += wrap(f"carries {words}", width, "", most=2)
    done = ", ".join(a.replace("_", " ") for a in window.achieved) or "nothing yet"
    lines += wrap(f"achieved {done}", width, "dim", most=3)
    hour = "night" if window.daylight < 0.35 else "dusk" if window.daylight < 0.7 else "day"
    doing = "asleep" if window.sleeping else f"facing {('left', 'right', 'up', 'down')[window.facing]}"
    lines.append(
        fit(
            line(
                (f"env step {window.steps}, {window.steps_left} left, at {window.x},{window.y}, {doing}, {hour}", "dim")
            ),
            width,
        )
    )
    if decision:
        lines.append(fit(line(("decision ", "dim"), (decision, "accent bold")), width))
    return lines
