"""Draws the pictures of the README again and makes its recording: `make screenshots`.

Runs a session to its end in a store of its own (or takes `--session ID` of yours), opens the real console on it
without a terminal, and saves what it shows. Needs `rsvg-convert` (Debian: librsvg2-bin, fonts-firacode).
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

RUN = (
    "run", "crafter_score", "--seed", "1", "--iterations", "1", "--env-steps", "600000", "--skills", "none",
    "--headless",
)  # fmt: skip
TEXT = re.compile(
    r'<text(?P<head>[^>]*?)x="(?P<x>[\d.]+)"(?P<middle>[^>]*?)textLength="(?P<length>[\d.]+)"(?P<tail>[^>]*)>'
    r"(?P<text>[^<]*)</text>"
)
IMAGES = Path(__file__).parent / "images"


class Picture(NamedTuple):
    name: str
    columns: int
    lines: int
    keys: tuple[str, ...] = ()
    """Pressed before the picture is taken."""


PICTURES = (
    Picture("session", 170, 50),
    Picture("small", 80, 24, ("9",)),
)


async def draw(picture: Picture, home: Path, session: str, settle: float) -> str:
    from rlgpt.console.app import ConsoleApp

    app = ConsoleApp(home, session, animated=False)
    async with app.run_test(size=(picture.columns, picture.lines)) as pilot:
        await pilot.pause(settle)
        for key in picture.keys:
            await pilot.press(key)
        await pilot.pause(settle)
        return app.export_screenshot(title="rlgpt")


def save(svg: str, name: str) -> Path:
    """As PNG: the SVG would fetch its font from the network."""
    target = IMAGES / f"{name}.png"
    IMAGES.mkdir(exist_ok=True)
    spaced = on_the_grid(svg).replace("<svg class", '<svg xml:space="preserve" class')
    command = ["rsvg-convert", "-w", "1600", "-o", str(target)]
    subprocess.run(command, input=spaced.encode(), check=True)
    return target


def on_the_grid(svg: str) -> str:
    """Every braille character in a text element of its own: another font draws them, and wider than a cell."""
    return TEXT.sub(_apart, svg)


def _apart(found: re.Match[str]) -> str:
    text = html.unescape(found["text"])
    if not any("\u2800" <= character <= "\u28ff" for character in text):
        return found[0]
    x, cell = float(found["x"]), float(found["length"]) / len(text)
    parts = (
        f'<text{found["head"]}x="{x + i * cell:.1f}"{found["middle"]}textLength="{cell:.1f}"{found["tail"]}>'
        f"{html.escape(character)}</text>"
        for i, character in enumerate(text)
        if not character.isspace()
    )
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session", help="A session of your store, instead of a new one.")
    parser.add_argument("--settle", type=float, default=1.5, help="Seconds to let the console read and draw.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        session = options.session
        if session is None:
            os.environ["RLGPT_HOME"] = scratch
            subprocess.run([Path(sys.executable).with_name("rlgpt"), *RUN], check=True)
            session = "last"
        from rlgpt.store.home import home

        for picture in PICTURES:
            print(save(asyncio.run(draw(picture, home(), session, options.settle)), picture.name))
        from recording import TARGET, record

        TARGET.write_text("\n".join(record(session)) + "\n", encoding="utf-8")
        print(TARGET)


if __name__ == "__main__":
    main()
