"""A picture as half-block cells: two pixels a cell, in the terminal's own colours. For worlds with JPEG frames.

Its comment, if it has one, is the text to stand under it.
"""

from __future__ import annotations

import io

from rlgpt.console.view.text import Line, Span, wrap

MOST_PIXELS = 4_000_000
"""A stored frame is small; more is refused before it is decoded."""
MOST_LINES = 6
"""Of a caption."""


def draw(body: bytes, width: int, height: int) -> list[Line]:
    """At most `width` x `height` cells, of the picture's shape, its caption below; [] for bytes that are no picture."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(body), formats=("JPEG", "PNG")) as image:
            if image.width * image.height > MOST_PIXELS:
                return []
            caption = _caption(image.info.get("comment", b""), width)
            scale = min(width / image.width, 2 * max(height - len(caption), 1) / image.height)
            size = (max(1, int(image.width * scale)), max(2, int(image.height * scale) // 2 * 2))
            small = image.convert("RGB").resize(size)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):  # the last is Pillow's word for a broken PNG
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
    return lines + caption


def _caption(comment: bytes | str, width: int) -> list[Line]:
    text = comment.decode("utf-8", "replace") if isinstance(comment, bytes) else comment
    return wrap(text, width, most=MOST_LINES) if text else []
