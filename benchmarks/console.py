"""How fast the console is, through a pty, by the cells that change on the screen a terminal makes of its bytes.

    python -P benchmarks/console.py [--json]

Measures: first frame and session rows; key press to painted; a session of 1,000,000 metric points and 10,000
events: its first full-range curve after opening, and seeks; processor share and bytes per second of a live view.
Timings are of this machine, quiet or not: run it alone. A change is as old as the bytes that made it: they are
taken from the pty as they come, and only afterwards given to the emulator that says what they changed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "console"))

from sample_sessions import long, whole
from stored import append, write
from story import Story
from terminal import Terminal, _without_unknown, console_words

LIMITS = {
    "first_frame_s": 0.5,
    "session_rows_s": 0.8,
    "key_p95_ms": 16.0,
    "first_curve_s": 0.3,
    "seek_p95_ms": 50.0,
    "live_core_share": 0.05,
}
SILENCE = 0.15
"""Seconds without a byte after which what came is looked at."""
LONG, SHORT = "261120-010000-zz", "261121-010000-aa"


def p95(values: list[float]) -> float:
    return sorted(values)[min(int(len(values) * 0.95), len(values) - 1)]


def braille(text: str) -> bool:
    return any("\u2801" <= c <= "\u28ff" for c in text)


class Watched(Terminal):
    """Reads at once and draws later: the emulator's own time is not the console's, nor may it hold up its writes."""

    def when(self, *seen: Callable[[str], bool], seconds: float = 20.0) -> list[float]:
        """For each condition on the screen's text `time.perf_counter` of the first bytes after which it holds."""
        end = time.perf_counter() + seconds
        found: list[float] = []
        while len(found) < len(seen) and time.perf_counter() < end:
            for moment, part in self._parts(end):
                self._stream.feed(_without_unknown(part))
                while len(found) < len(seen) and seen[len(found)](self.text()):
                    found.append(moment)
        if len(found) < len(seen):
            raise SystemExit(f"a measurement never ended; the screen says\n{self.text()}")
        return found

    def _parts(self, end: float) -> list[tuple[float, bytes]]:
        """What comes until it is silent, with the time at which it came."""
        parts: list[tuple[float, bytes]] = []
        while time.perf_counter() < end and select.select([self._file], [], [], SILENCE)[0]:
            try:
                part = os.read(self._file, 65_536)
            except OSError:
                raise SystemExit(f"the console ended; its screen said\n{self.text()}\n{parts}") from None
            parts.append((time.perf_counter(), part))
            self.raw += part
        return parts


def key(t: Watched, press: str) -> float:
    """Milliseconds from the key press to the first changed cell."""
    t.read(0.05)
    shown = _cells(t)
    start = time.perf_counter()
    t.press(press)
    return 1000 * (t.when(lambda _: _cells(t) != shown)[0] - start)


def _cells(t: Watched) -> list[str]:
    """Each row's characters and background colours: a moved cursor bar changes colours only."""
    rows = (t.screen.buffer[y] for y in range(t.screen.lines))
    return ["".join(row[x].data + str(row[x].bg) for x in range(t.screen.columns)) for row in rows]


def start(home: str) -> dict[str, float]:
    frames, rows = [], []
    for _ in range(5):
        begun = time.perf_counter()
        with Watched(console_words(home)) as t:
            frame, listed = t.when(lambda text: "rlgpt" in text, lambda text: "make_stone_pickaxe-1" in text)
            frames.append(frame - begun)
            rows.append(listed - begun)
    return {"first_frame_s": median(frames), "session_rows_s": median(rows)}


def keys(home: str) -> dict[str, float]:
    with Watched(console_words(home, SHORT)) as t:
        t.when(lambda text: "1 Plan" in text and braille(text))
        t.read(1.0)
        times = [key(t, "j" if n % 8 < 4 else "k") for n in range(80)]
        times += [key(t, "1" if n % 2 else "2") for n in range(40)]
    return {"key_p50_ms": median(times), "key_p95_ms": p95(times)}


def big(home: str) -> dict[str, float]:
    curves, seeks = [], []
    for _ in range(3):
        with Watched(console_words(home)) as t:
            t.when(lambda text: text.count("make_stone_pickaxe-1") >= 2)
            t.read(1.5)
            begun = time.perf_counter()
            t.press("G\r")
            curves.append(t.when(lambda text: "1 Plan" in text and braille(text))[0] - begun)
    with Watched(console_words(home, LONG)) as t:
        t.when(lambda text: "1 Plan" in text and braille(text) and "row" not in text)
        t.read(3.0)
        for n in range(60):
            seeks.append(_seek(t, "{" if n % 20 < 10 else "}"))
    return {"first_curve_s": median(curves), "seek_p50_ms": median(seeks), "seek_p95_ms": p95(seeks)}


def _seek(t: Watched, press: str) -> float:
    """Milliseconds until the plan, status or curves (not only the timeline) show the new moment."""
    t.read(0.1)
    height = t.screen.lines - 4
    before = t.text().splitlines()[:height]
    begun = time.perf_counter()
    t.press(press)
    return 1000 * (t.when(lambda text: text.splitlines()[:height] != before)[0] - begun)


def live(home: str, seconds: float = 20.0) -> dict[str, float]:
    """Four charts visible while a writer adds one PPO update a second, as a worker does."""
    story: Story = whole("s-live", ended=False)
    place = write("261121-090000-ll", story.rows, story.texts)
    story.rows.clear()
    stop = threading.Event()

    def work() -> None:
        update = 12
        while not stop.wait(1.0):
            update += 1
            story.metric(3, update, 2048, 0.6)
            append(place, story.rows, {})
            story.rows.clear()

    with Watched(console_words(home, "261121-090000-ll")) as t:
        t.when(lambda text: "1 Plan" in text and braille(text))
        worker = threading.Thread(target=work)
        worker.start()
        t.read(0.5)
        first, spent, begun = len(t.raw), _processor(t.pid), time.monotonic()
        while time.monotonic() - begun < seconds:
            t.read(0.05)
        share = (_processor(t.pid) - spent) / (time.monotonic() - begun)
        octets = (len(t.raw) - first) / seconds
        stop.set()
        worker.join()
    return {"live_core_share": share, "live_bytes_per_s": octets}


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["RLGPT_HOME"] = home
        told = whole()
        write(SHORT, told.rows, told.texts)
        found: dict[str, Any] = {**start(home), **keys(home), **live(home)}
        write(LONG, long(25_000, 10_000), {})
        found |= big(home)
    if arguments.json:
        print(json.dumps({"measured": found, "limits": LIMITS}))
        return
    for name, value in found.items():
        limit = LIMITS.get(name)
        mark = "" if limit is None else "  ok" if value <= limit else "  OVER"
        print(f"{name:<20}{value:>10.3f}{'' if limit is None else f'   at most {limit:g}'}{mark}")


if __name__ == "__main__":
    main()
