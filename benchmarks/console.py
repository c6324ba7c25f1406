"""How fast the console is, through a pty, by the cells that change on the screen a terminal makes of its bytes.

    python benchmarks/console.py [--json]

Measures: first frame and session rows; key press to painted; a session of 1,000,000 metric points and 10,000
events: its first full-range curve after opening, and seeks; processor share and bytes per second of a live view.
Timings are of this machine, quiet or not: run it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "console"))

from stored import append, write
from story import Story, long, whole
from terminal import Terminal, console_words

LIMITS = {
    "first_frame_s": 0.5,
    "session_rows_s": 0.8,
    "key_p95_ms": 16.0,
    "first_curve_s": 0.3,
    "seek_p95_ms": 50.0,
    "live_core_share": 0.05,
}
LONG, SHORT = "261120-010000-zz", "261121-010000-aa"


def p95(values: list[float]) -> float:
    return sorted(values)[min(int(len(values) * 0.95), len(values) - 1)]


def braille(text: str) -> bool:
    return any("\u2801" <= c <= "\u28ff" for c in text)


def wait(t: Terminal, condition: Callable[[str], bool], seconds: float = 20.0) -> float:
    """Seconds until the screen satisfies the condition, looked at after every read."""
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        t.read(0.001)
        if condition(t.text()):
            return time.perf_counter() - start
    raise SystemExit(f"a measurement never ended; the screen says\n{t.text()}")


def key(t: Terminal, press: str) -> float:
    """Milliseconds from the key press to the first changed cell."""
    t.read(0.05)
    shown = _cells(t)
    start = time.perf_counter()
    t.press(press)
    while time.perf_counter() - start < 5:
        if t.read(0.0005) and _cells(t) != shown:
            return 1000 * (time.perf_counter() - start)
    raise SystemExit(f"{press!r} changed nothing on\n{t.text()}")


def _cells(t: Terminal) -> list[str]:
    """Each row's characters and background colours: a moved cursor bar changes colours only."""
    rows = (t.screen.buffer[y] for y in range(t.screen.lines))
    return ["".join(row[x].data + str(row[x].bg) for x in range(t.screen.columns)) for row in rows]


def start(home: str) -> dict[str, float]:
    frames, rows = [], []
    for _ in range(5):
        with Terminal(console_words(home)) as t:
            frames.append(wait(t, lambda text: "rlgpt" in text))
            wait(t, lambda text: "make_stone_pickaxe-1" in text)
            rows.append(time.monotonic() - t.started)
    return {"first_frame_s": median(frames), "session_rows_s": median(rows)}


def keys(home: str) -> dict[str, float]:
    with Terminal(console_words(home, SHORT)) as t:
        wait(t, lambda text: "1 Plan" in text and braille(text))
        t.read(1.0)
        times = [key(t, "j" if n % 8 < 4 else "k") for n in range(80)]
        times += [key(t, "1" if n % 2 else "2") for n in range(40)]
    return {"key_p50_ms": median(times), "key_p95_ms": p95(times)}


def big(home: str) -> dict[str, float]:
    curves, seeks = [], []
    for _ in range(3):
        with Terminal(console_words(home)) as t:
            wait(t, lambda text: text.count("make_stone_pickaxe-1") >= 2)
            t.read(1.5)
            t.press("G\r")
            curves.append(wait(t, lambda text: "1 Plan" in text and braille(text)))
    with Terminal(console_words(home, LONG)) as t:
        wait(t, lambda text: "1 Plan" in text and braille(text) and "row" not in text)
        t.read(3.0)
        for n in range(60):
            seeks.append(_seek(t, "{" if n % 20 < 10 else "}"))
    return {"first_curve_s": median(curves), "seek_p50_ms": median(seeks), "seek_p95_ms": p95(seeks)}


def _seek(t: Terminal, press: str) -> float:
    """Milliseconds until the plan, status or curves (not only the timeline) show the new moment."""
    t.read(0.1)
    height = t.screen.lines - 4
    before = t.text().splitlines()[:height]
    start_ = time.perf_counter()
    t.press(press)
    while time.perf_counter() - start_ < 5:
        if t.read(0.0005) and t.text().splitlines()[:height] != before:
            return 1000 * (time.perf_counter() - start_)
    raise SystemExit("a seek changed nothing")


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

    with Terminal(console_words(home, "261121-090000-ll")) as t:
        wait(t, lambda text: "1 Plan" in text and braille(text))
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
