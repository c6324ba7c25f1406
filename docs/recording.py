"""Records the console in a real terminal: `python docs/recording.py --session ID` writes docs/images/tour.cast.

The file is an asciicast (https://docs.asciinema.org/manual/asciicast/v2/): `asciinema play docs/images/tour.cast`.
`make screenshots` makes it anew from the session that it draws.
"""

from __future__ import annotations

import argparse
import codecs
import json
import os
import select
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "console"))

from terminal import Terminal, _without_unknown

TARGET = Path(__file__).parent / "images" / "tour.cast"
SIZE = (100, 30)
LONGEST_PAUSE = 2.0
"""Seconds; a longer silence is cut."""


class Beat(NamedTuple):
    keys: str
    seconds: float = 1.6
    """That what they show is looked at."""
    shows: str = ""
    """Text to wait for before that."""


DOWN, RIGHT, ESCAPE = "\x1b[B", "\x1b[C", "\x1b"
BEATS = (
    Beat("", 4.0, "Welcome to rlgpt"),
    Beat("\r", 2.5, "Plan"),
    Beat("9", 3.0, "Most are lost at"),
    Beat("W", 3.0, "PPO does not improve"),
    Beat("E", 2.5, "▸"),
    Beat("3", 1.0, "smoothing"),
    Beat("\r", 1.5, "charts 1 of"),
    Beat("x", 0.5, "crosshair"),
    *(Beat(RIGHT, 0.2) for _ in range(6)),
    Beat("\r", 1.0),
    Beat("1", 0.5),
    Beat("d", 2.5, "revisions, d"),
    Beat("d", 1.0),
    Beat("H", 1.0, "REPLAY"),
    *(Beat(".", 0.1) for _ in range(4)),
    Beat(" ", 1.6, "PLAY"),
    Beat("l", 1.5, "END"),
    Beat("?", 1.0, "type to search"),
    *(Beat(letter, 0.15) for letter in "loop"),
    Beat("", 2.5, "dead loop"),
    Beat(ESCAPE, 1.0),
)
"""The tour, the funnel, why PPO does not improve, the episodes, one chart with its values, the plan's revisions, a
replay from the beginning, and a word that help explains."""
PATIENCE = 30.0


class Recorded(Terminal):
    """Keeps what the console writes with the time at which it came."""

    events: list[tuple[float, str]]

    def watch(self, seconds: float) -> None:
        """Take what comes for so long."""
        if not hasattr(self, "events"):
            self.events, self._decoder = [], codecs.getincrementaldecoder("utf-8")("replace")
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self._file], [], [], left)[0]:
                return
            try:
                part = os.read(self._file, 65_536)
            except OSError:  # it was left
                return
            self.events.append((time.monotonic(), self._decoder.decode(part)))
            self._stream.feed(_without_unknown(part))

    def watch_until(self, text: str) -> None:
        end = time.monotonic() + PATIENCE
        while text not in self.text():
            if time.monotonic() > end:
                raise SystemExit(f"{text!r} never came; the screen says\n{self.text()}")
            self.watch(0.1)


def record(session: str) -> list[str]:
    """The lines of the asciicast. A scratch home has the console's choices, so that the first tour is shown."""
    from rlgpt.store.bundle import export_bundle, import_bundle
    from rlgpt.store.catalog import find

    with tempfile.TemporaryDirectory() as scratch:
        bundle = export_bundle(find(session), Path(scratch) / "copy.rlgpt")
        home = Path(scratch) / "rlgpt"
        home.mkdir()
        os.environ["RLGPT_HOME"] = str(home)
        ident = import_bundle(bundle).id
        words = [sys.executable, "-P", "-m", "rlgpt.console.cli", "attach", ident]
        with Recorded(words, SIZE, {"RLGPT_HOME": str(home)}) as t:
            for keys, seconds, shows in BEATS:
                if keys:
                    t.press(keys)
                if shows:
                    t.watch_until(shows)
                t.watch(seconds)
            events = t.events
    clock, before = 0.0, events[0][0]
    lines = [json.dumps({"version": 2, "width": SIZE[0], "height": SIZE[1], "title": "rlgpt",
                         "env": {"TERM": "xterm-256color"}})]  # fmt: skip
    for at, text in events:
        clock += min(at - before, LONGEST_PAUSE)
        before = at
        lines.append(json.dumps([round(clock, 3), "o", text], ensure_ascii=False))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session", default="last", help="A finished session of your store.")
    options = parser.parse_args()
    lines = record(options.session)
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(lines) - 1} events, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
