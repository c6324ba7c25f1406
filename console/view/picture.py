"""A picture as half-block cells: two pixels a cell, in the terminal's own colours. For worlds with JPEG frames."""

from __future__ import annotations

import io

from rlgpt.console.view.text import Line, Span

MOST_PIXELS = 4_000_000
"""A stored frame is small; more is refused before it is decoded."""


def draw(body: bytes, width: int, height: int) -> list[Line]:
    """At most `width` x `height` cells, of the picture's shape; [] for bytes that are no picture."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(body), formats=("JPEG", "PNG")) as image:
            if image.width * image.height > MOST_PIXELS:
                return []
            scale = min(width / image.width, 2 * height / image.height)
            size = (max(1, int(image.width * scale)), max(2, int(image.height * scale) // 2 * 2))
            small = image.convert("RGB").resize(size)
    except (UnidentifiedImageError, OSError, ValueError):
        return []
    pixels = small.tobytes()
    row = 3 * size[0]
    lines: list[Line] = []
    for y in range(0, size[1], 2):
        spans = []
        for x in range(size[0]):
            top = pixels[y * row + 3 * x : y * row + 3 * x + 3].hex()
            low = pixels[(y + 1) * row + 3 * x : (y + 1) * row + 3 * x + 3].hex()
            spans.append(Span("▀", f"#{top}/#{low}"))
        lines.append(tuple(spans))
    return lines
