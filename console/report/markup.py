"""Lines of spans and stored frames as HTML. Everything is escaped here; nothing of a session is ever markup."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import cache

from markupsafe import Markup, escape

from rlgpt.console.palette import Palette
from rlgpt.console.themes import THEMES
from rlgpt.console.view.frames import drawn
from rlgpt.console.view.text import Line, Span
from rlgpt.store.export.svg import printable
from rlgpt.store.films import Frame

FRAME = (44, 18)
"""Most cells and lines of a frame that is drawn as text."""
LONGEST = 20_000
"""Characters of one text."""
MOST_BYTES = 200_000
"""Of a picture that is put into the page."""
_JPEG = b"\xff\xd8\xff"


@cache
def _palette() -> Palette:
    """Of the light theme: a page is read on paper too."""
    light = next(theme for theme in THEMES if not theme.dark)
    return Palette(light.to_color_system().generate(), dark=False)


def block(lines: Iterable[Line]) -> Markup:
    """As preformatted text, coloured as in the console."""
    rows = (Markup("").join(_span(text, style) for text, style in line) for line in lines)
    return Markup("<pre>{}</pre>").format(Markup("\n").join(rows))


def harmless(text: str) -> str:
    """Anybody's text without control and direction characters, and without what UTF-8 has no bytes for; cut."""
    shown = printable(text.encode("utf-8", "replace").decode())
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}\n[{len(shown) - LONGEST} more characters]"


def _span(text: str, tokens: str) -> Markup:
    shown = escape(harmless(text))
    css = _palette().style(tokens).get_html_style() if tokens else ""
    return Markup('<span style="{}">{}</span>').format(css, shown) if css else shown


def frame(module: str, shown: Frame) -> Markup:
    """A stored frame as its world draws it; a picture as a picture."""
    body = shown.body
    if body.startswith(_JPEG) and len(body) <= MOST_BYTES:
        return Markup('<img alt="frame" src="data:image/jpeg;base64,{}">').format(base64.b64encode(body).decode())
    lines = drawn(module, body, *FRAME, shown.decision) if module else None
    if lines is None and shown.format == "text":
        lines = [(Span(row),) for row in body.decode("utf-8", "replace").splitlines()]
    if lines is None:
        return Markup("<p class=soft>{}</p>").format(f"a frame of the format {harmless(shown.format)}")
    return block(lines)
