"""Maps style tokens to colours of the present theme. The only place where the words of a view become terminal
styles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from rlgpt.console.sanitise import clean
from rlgpt.console.view.text import Span

_CURVES = {
    True: ("#4fc1ff", "#f5a742", "#b58cff", "#7ddc7d", "#ff6f91", "#e8d44d", "#56d4c8", "#c9a27e"),
    False: ("#0067b8", "#b35900", "#6b2fbf", "#1f7a1f", "#b8003c", "#7a6a00", "#00746a", "#7a5230"),
}
_TILES = {
    "grass": ("#3d8b40", "#5cb85f"),
    "water": ("#1e5aa8", "#5b9be0"),
    "stone": ("#6b6b70", "#8d8d94"),
    "path": ("#a58d6a", "#7d6a4e"),
    "sand": ("#d9c58b", "#b8a568"),
    "tree": ("#24602a", "#7fd184"),
    "lava": ("#c43a12", "#ffc04d"),
    "coal": ("#5b5b60", "#101012"),
    "iron": ("#6b6b70", "#f0b48a"),
    "diamond": ("#6b6b70", "#9df3ff"),
    "table": ("#7a5230", "#e0b076"),
    "furnace": ("#55555a", "#ff9d4d"),
    "unknown": ("#101014", "#303038"),
}
_BEINGS = {
    "cow": "#fff3e0",
    "zombie": "#b6ff5c",
    "skeleton": "#ffffff",
    "sapling": "#d8ffb0",
    "ripe_plant": "#ff9df0",
    "agent": "#ffffff",
}
_ANSI = {
    "ok": "green",
    "warn": "yellow",
    "bad": "red",
    "accent": "cyan",
    "code_string": "green",
    "code_number": "magenta",
    "code_keyword": "blue",
    "code_builtin": "cyan",
    "code_name": "yellow",
    "bar": "green",
    "mark_plan": "magenta",
    "mark_code": "blue",
    "mark_verdict": "green",
    "mark_override": "yellow",
    "mark_iteration": "white",
    "rl": "magenta",
    "brand": "cyan",
    "title": "white",
}
_ANSI_CURVES = ("cyan", "yellow", "magenta", "green", "red", "blue", "white", "bright_black")


class Palette:
    """`style(tokens)` is cached; a new one is made when the theme changes."""

    def __init__(self, colours: Mapping[str, str], dark: bool, ansi: bool = False) -> None:
        self._cache: dict[str, Style] = {}
        self._tokens = _ansi_tokens() if ansi else _tokens(colours, dark)
        self._ground = "" if ansi else _plain(colours.get("background", "#000000"))

    def style(self, tokens: str) -> Style:
        style = self._cache.get(tokens)
        if style is None:
            style = Style.null()
            for token in tokens.split():
                if token == "night":
                    style = self._darkened(style)
                elif token in self._tokens:
                    style += self._tokens[token]
                elif token.startswith("#"):
                    front, _, back = token.partition("/")
                    style += Style(color=front, bgcolor=back or None)
            if len(self._cache) > 20_000:
                self._cache.clear()
            self._cache[tokens] = style
        return style

    def segments(self, spans: Iterable[Span], extra: str = "") -> list[Segment]:
        """The one way from a span to the terminal: cleaned and styled. `extra` lies under every style."""
        over = self.style(extra) if extra else None
        out = []
        for text, tokens in spans:
            style = self.style(tokens)
            out.append(Segment(clean(text), over + style if over else style))
        return out

    def _darkened(self, style: Style) -> Style:
        if style.bgcolor is None or style.bgcolor.triplet is None or not self._ground:
            return style
        r, g, b = style.bgcolor.triplet
        return style + Style(bgcolor=Color.from_rgb(r * 0.45, g * 0.45, b * 0.6))


def _plain(colour: str) -> str:
    """A theme variable without its alpha suffix (`#123456 60%`)."""
    return colour.split()[0] if colour.startswith("#") else "#000000"


def _mix(one: str, other: str, share: float) -> str:
    a, b = (Color.parse(_plain(c)).get_truecolor() for c in (one, other))
    return "#" + "".join(f"{round(x + (y - x) * share):02x}" for x, y in zip(a, b, strict=True))


def _tokens(c: Mapping[str, str], dark: bool) -> dict[str, Style]:
    ground, front = _plain(c["background"]), _plain(c["foreground"])
    ok, warn, bad, accent = (_plain(c[k]) for k in ("success", "warning", "error", "accent"))
    primary, secondary = _plain(c["primary"]), _plain(c["secondary"])
    curves = _CURVES[dark]
    dim = _mix(front, ground, 0.42)
    axis = _mix(front, ground, 0.68)
    styles = {
        "dim": Style(color=dim),
        "axis": Style(color=axis),
        "bold": Style(bold=True),
        "strike": Style(strike=True),
        "ok": Style(color=ok),
        "warn": Style(color=warn),
        "bad": Style(color=bad),
        "accent": Style(color=accent),
        "head": Style(color=primary, bold=True),
        "title": Style(color=front, bold=True),
        "brand": Style(color=primary, bold=True),
        "bar": Style(color=primary),
        "track": Style(bgcolor=_mix(ground, front, 0.14)),
        "rl": Style(color=curves[2]),
        "badge_code": Style(color=ground, bgcolor=curves[0], bold=True),
        "badge_rl": Style(color=ground, bgcolor=curves[2], bold=True),
        "badge_option": Style(color=ground, bgcolor=curves[3], bold=True),
        "badge_live": Style(color=ground, bgcolor=ok, bold=True),
        "badge_warn": Style(color=ground, bgcolor=warn, bold=True),
        "badge": Style(color=ground, bgcolor=dim, bold=True),
        "key": Style(color=accent, bold=True),
        "selected": Style(bold=True, underline=True, color=accent),
        "cursor": Style(color=accent, bold=True),
        "row": Style(bgcolor=_mix(ground, primary, 0.30)),
        "row_idle": Style(bgcolor=_mix(ground, front, 0.10)),
        "match": Style(color=ground, bgcolor=warn),
        "added": Style(bgcolor=_mix(ground, ok, 0.16)),
        "removed": Style(bgcolor=_mix(ground, bad, 0.16)),
        "added_word": Style(bgcolor=_mix(ground, ok, 0.42), bold=True),
        "removed_word": Style(bgcolor=_mix(ground, bad, 0.42), bold=True),
        "code_comment": Style(color=dim, italic=True),
        "code_string": Style(color=ok),
        "code_number": Style(color=curves[1]),
        "code_keyword": Style(color=curves[2], bold=True),
        "code_builtin": Style(color=secondary),
        "code_name": Style(color=curves[0]),
        "mark_plan": Style(color=curves[2]),
        "mark_code": Style(color=curves[0]),
        "mark_verdict": Style(color=ok),
        "mark_override": Style(color=warn, bold=True),
        "mark_iteration": Style(color=front, bold=True),
    }
    styles |= {f"curve{i}": Style(color=colour) for i, colour in enumerate(curves, 1)}
    for name, (back, glyph) in _TILES.items():
        styles[f"on_{name}"] = Style(bgcolor=back)
        styles[f"tile_{name}"] = Style(color=glyph)
    styles |= {f"tile_{name}": Style(color=colour, bold=True) for name, colour in _BEINGS.items()}
    styles |= {f"tile_arrow_{way}": Style(color="#ffd0d0", bold=True) for way in ("left", "right", "up", "down")}
    return styles


def _ansi_tokens() -> dict[str, Style]:
    """For terminals with 16 colours: their own palette, structure by weight and reverse video."""
    styles = {name: Style(color=colour) for name, colour in _ANSI.items()}
    styles |= {f"curve{i}": Style(color=colour) for i, colour in enumerate(_ANSI_CURVES, 1)}
    styles |= {
        "dim": Style(color="bright_black"),
        "axis": Style(color="bright_black"),
        "bold": Style(bold=True),
        "strike": Style(strike=True),
        "head": Style(color="cyan", bold=True),
        "title": Style(bold=True),
        "brand": Style(color="cyan", bold=True),
        "track": Style(),
        "badge_code": Style(color="cyan", reverse=True),
        "badge_rl": Style(color="magenta", reverse=True),
        "badge_option": Style(color="green", reverse=True),
        "badge": Style(reverse=True),
        "badge_live": Style(color="green", reverse=True),
        "badge_warn": Style(color="yellow", reverse=True),
        "key": Style(color="cyan", bold=True),
        "selected": Style(bold=True, underline=True),
        "cursor": Style(color="cyan", bold=True),
        "row": Style(reverse=True),
        "row_idle": Style(underline=True),
        "match": Style(color="yellow", reverse=True),
        "added": Style(color="green"),
        "removed": Style(color="red"),
        "added_word": Style(color="green", bold=True, underline=True),
        "removed_word": Style(color="red", bold=True, underline=True),
        "code_comment": Style(color="bright_black"),
    }
    ansi = {
        "grass": "green",
        "water": "blue",
        "stone": "bright_black",
        "path": "yellow",
        "sand": "bright_yellow",
        "tree": "green",
        "lava": "red",
        "coal": "black",
        "iron": "bright_black",
        "diamond": "bright_black",
        "table": "yellow",
        "furnace": "white",
        "unknown": "black",
    }
    styles |= {f"on_{name}": Style(bgcolor=colour) for name, colour in ansi.items()}
    styles |= {f"tile_{name}": Style(color="bright_white", bold=True) for name in (*_TILES, *_BEINGS)}
    return styles
