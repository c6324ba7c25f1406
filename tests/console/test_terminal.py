"""End to end in a pseudo-terminal: what a person and their terminal get."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import CORPUS
from sample_sessions import whole
from terminal import Terminal, console_words

from rlgpt.store.bundle import export_bundle
from rlgpt.store.folder import SessionFolder

IDENT = "261121-010000-aa"


@pytest.fixture
def stored(home: Path, store: Callable[..., Path]) -> str:
    store(IDENT)
    return str(home)


def test_list_open_replay_and_leave(stored: str) -> None:
    with Terminal(console_words(stored)) as t:
        t.until("make_stone_pickaxe-1")
        t.press("\r")
        t.until(lambda text: "1 Plan" in text and "74/100" in text)
        t.press("H")
        t.until(lambda text: "❚❚ REPLAY" in text and "row 1 of" in text and "has not planned yet" in text)
        t.press("P")
        t.until("plan 1 by slow")
        t.press("l")
        t.until(" END ")
        t.press("q")
        t.until("Sessions")
        t.press("q")
        assert t.wait() == 0


def test_a_bundle_is_replayed_where_it_lies_and_left_without_a_word(
    home: Path, store: Callable[..., Path], tmp_path: Path
) -> None:
    bundle = export_bundle(SessionFolder(store(IDENT, whole(IDENT))), tmp_path / "x.rlgpt")
    bundle.chmod(0o400)
    shutil.rmtree(home)
    with Terminal([sys.executable, "-m", "rlgpt.console.cli", "replay", str(bundle)]) as t:
        t.until("Welcome to rlgpt")
        t.press("q")
        t.until(lambda text: "1 Plan" in text and "READ-ONLY" in text and "▶ PLAY" in text)
        t.press("q")
        assert t.wait() == 0
    assert not home.exists() or not (home / "sessions").exists()
    assert t.raw[t.raw.rfind(b"\x1b[?1049l") :].count(b"rlgpt:") == 0, "an error was said after leaving"


def test_a_terminal_is_left_as_it_was_found(stored: str) -> None:
    with Terminal(console_words(stored)) as t:
        t.until("make_stone_pickaxe-1")
        t.press("q")
        assert t.wait() == 0
        assert t.raw.rfind(b"\x1b[?1049l") > t.raw.rfind(b"\x1b[?1049h")
        assert t.raw.rfind(b"\x1b[?25h") > t.raw.rfind(b"\x1b[?25l")


def test_a_console_that_is_told_to_end_leaves_its_terminal_as_it_was_found(stored: str) -> None:
    with Terminal(console_words(stored)) as t:
        t.until("make_stone_pickaxe-1")
        os.kill(t.pid, signal.SIGTERM)
        assert t.wait() == 128 + signal.SIGTERM
        assert t.raw.rfind(b"\x1b[?1049l") > t.raw.rfind(b"\x1b[?1049h")
        assert t.raw.rfind(b"\x1b[?25h") > t.raw.rfind(b"\x1b[?25l")


def test_it_ends_with_its_terminal_though_nobody_sends_a_hang_up(stored: str) -> None:
    """The terminal is the console's, but not its session's controlling terminal."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    child = subprocess.Popen(
        console_words(stored), stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True
    )
    os.close(its)
    try:
        drawn = b""
        while b"make_stone_pickaxe-1" not in drawn:
            assert child.poll() is None
            drawn += os.read(ours, 65_536)
        os.close(ours)
        assert child.wait(60) == 128 + signal.SIGHUP
    finally:
        child.kill()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_no_hostile_text_reaches_the_terminal(home: Path, store: Callable[..., Path], size: tuple[int, int]) -> None:
    from test_views_hostile import poisoned

    text = "".join(t for t in CORPUS if len(t) < 1_000).replace("\ud800", "").replace("\udfff", "")
    store(IDENT, poisoned(text))
    with Terminal(console_words(str(home), IDENT), size) as t:
        t.until(lambda screen: "1 Plan" in screen)
        for key in "12345678":
            t.press(key)
            t.read(0.3)
            t.press("\r")
            t.read(0.2)
        t.press("zq")
        t.read(0.3)
        raw = t.raw
    own = re.compile(rb"\x1b\]2;rlgpt[^\x07\x1b]*\x07|\x1b\]9;[^\x07\x1b]*\x07|\x1b\]22;[a-z-]+\x07")
    assert b"\x1b]" not in own.sub(b"", raw)
    for stolen in (b"\x1b]52", b"\x1b]0;", b"\x1bc", b"\x1b[2J\x1b[H", b"\x1b[6n", b"\x1b_", b"\x1b^", b"\x00"):
        assert stolen not in raw


def test_no_color_means_no_colour(stored: str) -> None:
    with Terminal(console_words(stored, IDENT), environment={"NO_COLOR": "1"}) as t:
        t.until("1 Plan")
        t.read(0.5)
        colours = re.findall(rb"\x1b\[([0-9;]*)m", t.raw)
    greys = [m for c in colours for m in re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", c)]
    assert all(max(map(int, g)) - min(map(int, g)) <= 2 for g in greys)
    assert not any(re.search(rb"(?:^|;)(?:3[1-6]|4[1-6]|9[1-6]|10[1-6])(?:;|$)", c) for c in colours if b"8;2" not in c)


def test_sixteen_colours_are_enough(stored: str) -> None:
    with Terminal(console_words(stored, IDENT), environment={"TERM": "xterm", "COLORTERM": ""}) as t:
        t.until("1 Plan")
        t.read(0.5)
        assert b"38;2;" not in t.raw and b"38;5;" not in t.raw
        t.press("3")
        t.until("success rate")


def test_on_sixteen_colours_themes_are_readable_and_a_dialog_hides_nothing(stored: str) -> None:
    with Terminal(console_words(stored, IDENT), environment={"TERM": "xterm", "COLORTERM": ""}) as t:
        t.until("1 Plan")
        for theme in ("ansi-light", "ansi-dark"):
            t.press("\x1bOQ")
            t.until(f"theme {theme}")
        t.press("?")
        t.until(lambda text: "Keys, actions" in text and "make_stone_pickaxe-1" in text)
        assert b"\x1b[100m" not in t.raw and b";100m" not in t.raw, "bright black is what dim text is written in"


def test_a_resize_storm_ends_with_the_right_screen(stored: str) -> None:
    with Terminal(console_words(stored, IDENT)) as t:
        t.until("1 Plan")
        for step in range(40):
            t.resize(20 + step * 4, 5 + step)
        t.resize(80, 24)
        text = t.until(lambda screen: "1 Plan" in screen and "3 Curves" in screen and "q detach" in screen)
        assert all(len(line) <= 80 for line in text.splitlines())


NESTED = """
import fcntl, struct, termios
from textual.drivers.linux_driver import LinuxDriver
read = LinuxDriver._get_terminal_size
def slowly(self):
    size = read(self)
    if size == (100, 30):
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))  # the kernel says so at once
        for _ in range(100_000):
            pass
    return size
LinuxDriver._get_terminal_size = slowly
"""


def test_a_size_that_comes_while_one_is_read_is_the_last_word(stored: str) -> None:
    words = console_words(stored, IDENT)
    with Terminal([*words[:-1], NESTED + words[-1]]) as t:
        t.until("1 Plan")
        t.resize(100, 30)
        t.screen.resize(24, 80)
        t.until(lambda screen: "1 Plan" in screen and "3 Curves" in screen and "q detach" in screen, seconds=20.0)


def test_a_very_small_terminal_does_not_break_it(stored: str) -> None:
    with Terminal(console_words(stored, IDENT), (10, 3)) as t:
        t.until(lambda screen: "finis" in screen or "Goal" in screen)
        t.resize(120, 40)
        t.until("1 Plan")


def test_a_read_only_console_offers_and_sends_nothing(stored: str) -> None:
    with Terminal(console_words(stored, IDENT, read_only=True)) as t:
        t.until("READ-ONLY")
        t.press("op")
        t.read(0.5)
        assert "override the plan" not in t.text()
        assert "o override" not in t.text()


@pytest.mark.parametrize(("term", "said"), [("dumb", b"TERM=dumb"), ("unknown", b"TERM=unknown"), ("", b"no TERM")])
def test_a_dumb_terminal_gets_one_sentence(stored: str, term: str, said: bytes) -> None:
    with Terminal(console_words(stored), environment={"TERM": term}) as t:
        assert t.wait() == 2
        assert t.raw.count(b"\n") == 1 and said in t.raw and b"\x1b" not in t.raw


def test_with_standard_error_in_a_file_the_screen_is_not_left_empty(stored: str, tmp_path: Path) -> None:
    """`rlgpt 2>log`: Textual draws on standard error."""
    words = ["/bin/sh", "-c", f'"$0" "$@" 2>{tmp_path / "log"}', *console_words(stored)]
    with Terminal(words) as t:
        t.until("drawn on standard error")
        assert t.wait() == 2


def test_no_terminal_points_to_the_commands(stored: str) -> None:
    done = subprocess.run(console_words(stored), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 2 and "rlgpt sessions --json" in done.stderr and not done.stdout


def test_the_start_path_imports_nothing_heavy() -> None:
    code = (
        "import sys, rlgpt.console.app, rlgpt.console.screens.sessions; "
        "print([m for m in ('torch','stable_baselines3','gymnasium','pydantic','sqlmodel','sqlalchemy','typer',"
        "'numpy','crafter','numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_session_screen_needs_no_training_library() -> None:
    code = (
        "import sys, rlgpt.console.screens.session, rlgpt.console.panes.curves, rlgpt.console.screens.compare; "
        "print([m for m in ('torch','stable_baselines3','gymnasium','pydantic','sqlmodel') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_user_keymap_replaces_keys_and_a_wrong_one_is_said(home: Path, store: Callable[..., Path]) -> None:
    store(IDENT, whole())
    (home / "keymap.toml").write_text('"session.zoom" = "f9"\n"no.such" = "x"\n')
    with Terminal(console_words(str(home), IDENT)) as t:
        t.until("1 Plan")
        t.press("\x1b[20~")
        t.until(lambda screen: "3 Curves" not in screen and "1 Plan" in screen)
