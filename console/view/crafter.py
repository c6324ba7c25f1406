"""Crafter's stored window as coloured tiles: what the agent sees, never more.

The bytes are the packed senses of the embedded world (format `crafter-window-1`): 32 bytes of scalars, then 63
material codes and 63 object codes, row by row. The console knows the layout, not the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlgpt.console.view.text import Line, Span, fit, line, wrap

WIDTH, HEIGHT = 9, 7
CENTRE = WIDTH // 2 + WIDTH * (HEIGHT // 2)
_SCALARS = 32
SIZE = _SCALARS + 2 * WIDTH * HEIGHT
MATERIALS = ("unknown", "water", "grass", "stone", "path", "sand", "tree", "lava", "coal", "iron", "diamond", "table", "furnace")
OBJECTS = ("nothing", "cow", "zombie", "skeleton", "arrow_left", "arrow_right", "arrow_up", "arrow_down", "sapling", "ripe_plant")
ITEMS = (
    "health", "food", "drink", "energy", "sapling", "wood", "stone", "coal", "iron", "diamond",
    "wood_pickaxe", "stone_pickaxe", "iron_pickaxe", "wood_sword", "stone_sword", "iron_sword",
)  # fmt: skip
VITALS = 4
ACHIEVEMENTS = (
    "collect_coal", "collect_diamond", "collect_drink", "collect_iron", "collect_sapling", "collect_stone",
    "collect_wood", "defeat_skeleton", "defeat_zombie", "eat_cow", "eat_plant", "make_iron_pickaxe",
    "make_iron_sword", "make_stone_pickaxe", "make_stone_sword", "make_wood_pickaxe", "make_wood_sword",
    "place_furnace", "place_plant", "place_stone", "place_table", "wake_up",
)  # fmt: skip
_AGENT = ("◀", "▶", "▲", "▼")
_GLYPHS: dict[str, tuple[str, str]] = {
    "unknown": (" ", " "), "water": ("~", "≈"), "grass": (" ", "'"), "stone": ("▒", "░"), "path": (" ", "·"),
    "sand": (" ", "∙"), "tree": ("♣", "♠"), "lava": ("≈", "~"), "coal": ("•", "▒"), "iron": ("◆", "▒"),
    "diamond": ("◇", "▒"), "table": ("╥", "▔"), "furnace": ("▣", "▔"),
    "cow": ("c", "_"), "zombie": ("z", "_"), "skeleton": ("s", "_"), "arrow_left": ("←", " "), "arrow_right": ("→", " "),
    "arrow_up": ("↑", " "), "arrow_down": ("↓", " "), "sapling": ("♀", " "), "ripe_plant": ("✿", " "),
}  # fmt: skip
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
    materials: bytes
    objects: bytes


def read(body: bytes) -> Window | None:
    """None when the bytes are too short to be a window."""
    if len(body) < SIZE:
        return None
    unlocked = int.from_bytes(body[28:31], "little")
    area = WIDTH * HEIGHT
    return Window(
        body[1], body[2], body[3] % 4, bool(body[4]), body[5] / 255,
        int.from_bytes(body[8:10], "little"), int.from_bytes(body[10:12], "little"), tuple(body[12:28]),
        tuple(name for bit, name in enumerate(ACHIEVEMENTS) if unlocked >> bit & 1),
        body[_SCALARS : _SCALARS + area], body[_SCALARS + area : SIZE],
    )  # fmt: skip


def cell_names(window: Window) -> list[str]:
    """What each cell shows: the object on it, else its material; codes of a newer world are `unknown`."""
    return [
        _name(OBJECTS, thing) if thing else _name(MATERIALS, ground)
        for ground, thing in zip(window.materials, window.objects, strict=True)
    ]


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
                if index == CENTRE:
                    glyph = "☾" if window.sleeping else _AGENT[window.facing]
                    ground = _name(MATERIALS, window.materials[index])
                    spans.append(Span(_tile(glyph, " ", wide, tall, part, index), f"tile_agent on_{ground}{night}"))
                    continue
                name = names[index]
                main, texture = _GLYPHS[name]
                ground = _name(MATERIALS, window.materials[index])
                style = f"tile_{name} on_{ground}{night}"
                spans.append(Span(_tile(main, texture, wide, tall, part, index), style))
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
    for name, glyph, style, value in zip(("health", "food", "drink", "energy"), "♥◒◍✦", ("bad", "warn", "curve4", "curve3"), window.items, strict=False):
        vitals += [Span(f"{glyph} ", style), Span(f"{value}", "bold" if value > 3 else "bad bold"), Span(f" {name}  ", "dim")]
    lines.append(fit(vitals, width))
    carried = [(n, v) for n, v in zip(ITEMS[VITALS:], window.items[VITALS:], strict=True) if v]
    words = "  ".join(f"{n.replace('_', ' ')} {v}" for n, v in carried) or "nothing"
    lines += wrap(f"carries {words}", width, "", most=2)
    done = ", ".join(a.replace("_", " ") for a in window.achieved) or "nothing yet"
    lines += wrap(f"achieved {done}", width, "dim", most=3)
    hour = "night" if window.daylight < 0.35 else "dusk" if window.daylight < 0.7 else "day"
    doing = "asleep" if window.sleeping else f"facing {('left', 'right', 'up', 'down')[window.facing]}"
    lines.append(fit(line((f"env step {window.steps}, {window.steps_left} left, at {window.x},{window.y}, {doing}, {hour}", "dim")), width))
    if decision:
        lines.append(fit(line(("decision ", "dim"), (decision, "accent bold")), width))
    return lines


def _name(names: Sequence[str], code: int) -> str:
    return names[code] if code < len(names) else "unknown"
