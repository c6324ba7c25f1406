"""The operator console. `run` opens it; everything heavy is imported after the first frame."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.theme import Theme
from textual.timer import Timer, TimerCallback

from rlgpt.console import keymap
from rlgpt.console.palette import Palette
from rlgpt.console.preferences import Preferences
from rlgpt.console.sanitise import clean, clean_text
from rlgpt.console.themes import THEMES

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.driver import Driver

    from rlgpt.console.shell import Shell
    from rlgpt.console.view.news import Severity
    from rlgpt.store.folder import SessionFolder


def _actions() -> type[Provider]:
    from rlgpt.console.actions import Actions

    return Actions


class ConsoleApp(App[int]):
    """`palette`, `preferences`, `user_keys`, `clock` and `home` are what screens and panes share."""

    CSS_PATH = "console.tcss"
    TITLE = "rlgpt"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_actions}
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("app")
    AUTO_FOCUS = "*"
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]  # noqa: RUF012

    def __init__(
        self,
        home: Path,
        session: str | None = None,
        *,
        replay: bool = False,
        cursor: int | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
        animated: bool = True,
        begin: Callable[[], str] | None = None,
        tour: bool = False,
    ) -> None:
        """`begin` makes a session and returns its id; the console is open while it works, then on that session.
        `tour`: a person who was never here is shown around."""
        super().__init__()
        self._begin, self._guides = begin, tour
        self.mirrors = contextlib.ExitStack()
        self.home, self.read_only, self.clock, self.animated = home, read_only, clock, animated
        self._initial_session = (session, replay, cursor)
        self._leaving = False
        self.preferences = Preferences.load(home)
        self.user_keys, self._keymap_faults = keymap.user_keys(home)
        for theme in THEMES:
            self.register_theme(theme)
        self.palette = Palette({}, True, ansi=True)
        self.set_keymap(self.user_keys)

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        if driver.__name__ != "LinuxDriver":
            return driver
        from rlgpt.console.driver import ConsoleDriver

        return ConsoleDriver

    def on_mount(self) -> None:
        self.theme = self._first_theme()
        self._paint(self.theme)
        self.theme_changed_signal.subscribe(self, lambda theme: self._paint(theme.name))
        for sentence in self._keymap_faults:
            self.tell(sentence, "warning")
        session, replay, cursor = self._initial_session
        from rlgpt.console.screens.sessions import SessionsScreen

        self.push_screen(SessionsScreen())
        self.set_timer(0.5, self.settled)
        if session is not None:
            self.open_session(session, replay=replay, cursor=cursor)
        elif self._begin is None:
            self.show_tour()
        if self._begin is not None:
            self.notify("A session is being made; it opens here.", timeout=600)
            self.run_worker(self._make_session, thread=True, exit_on_error=False)

    def _make_session(self) -> None:
        from rlgpt.console.commands.failure import Failure
        from rlgpt.store.errors import StoreError

        assert self._begin is not None

        def begun(ident: str) -> None:
            self.clear_notifications()
            self._initial_session = (ident, False, None)
            self.open_session(ident, begun=True)

        def failed(sentence: str) -> None:
            self.clear_notifications()
            self.tell(sentence, "error")

        try:
            self.call_from_thread(begun, self._begin())
        except (Failure, StoreError, OSError) as error:
            self.call_from_thread(failed, str(error))

    @property
    def current_theme(self) -> Theme:
        """As Textual's, which copies the table of themes; every painted line asks for it."""
        return self._registered_themes.get(self.theme) or super().current_theme

    @property
    def available_themes(self) -> dict[str, Theme]:
        """Of 16 colours only the themes that are made of them: those nearest to another's make dim text its ground."""
        themes = super().available_themes
        if not self._few_colours:
            return themes
        return {name: theme for name, theme in themes.items() if name.startswith("ansi-")}

    def _first_theme(self) -> str:
        theme, usual = self.preferences.theme, "ansi-dark" if self._few_colours else "rlgpt-dark"
        return theme if theme in self.available_themes else usual

    @property
    def _few_colours(self) -> bool:
        return not self.is_headless and self.console.color_system in (None, "standard")

    def _paint(self, name: str) -> None:
        theme = self.get_theme(name)
        ansi = name.startswith("ansi-") or self._few_colours
        self.palette = Palette(self.theme_variables, bool(theme and theme.dark), ansi=ansi)
        for screen in self.screen_stack:
            for widget in screen.walk_children():
                widget.refresh()

    def set_timer(
        self,
        delay: float,
        callback: TimerCallback | None = None,
        *,
        name: str | None = None,
        pause: bool = False,
    ) -> Timer:
        """Textual drops a one-shot timer for good when its time is over before its task first waits, which a busy
        machine makes of the 8 ms after which a new terminal size is taken over; from then on no size was."""
        timer = super().set_timer(delay, callback, name=name, pause=True)
        timer._skip = False
        if not pause:
            timer.resume()
        return timer

    # ---- what screens ask of the app --------------------------------------------------------------
    def open_session(self, ident: str, *, replay: bool = False, cursor: int | None = None, begun: bool = False) -> None:
        from rlgpt.console.screens.session import SessionScreen
        from rlgpt.store import catalog
        from rlgpt.store.address import has_store, source_of
        from rlgpt.store.errors import StoreError

        def opened(folder: SessionFolder) -> None:
            self.push_screen(
                SessionScreen(self, folder.path, replay=replay, cursor=cursor, read_only=self.read_only, begun=begun)
            )

        try:
            session_folder = catalog.find(ident)
        except StoreError as error:
            if not has_store():
                self.tell(str(error), "error")
                return
            self.tell("asking the team's store …")
            self.run_worker(lambda: self._reach(ident, opened), thread=True, exit_on_error=False)
            return
        if source_of(session_folder.path):
            self.run_worker(lambda: self._reach(ident, opened), thread=True, exit_on_error=False)
            return
        opened(session_folder)

    def _reach(self, ident: str, opened: Callable[[SessionFolder], None]) -> None:
        """A session that is run elsewhere: its mirror is kept up as long as the console is open."""
        from rlgpt.store.errors import StoreError
        from rlgpt.store.reach import reached

        try:
            folder = self.mirrors.enter_context(reached(ident))
        except StoreError as error:
            self.call_from_thread(self.tell, str(error), "error")
            return
        self.call_from_thread(opened, folder)

    def show_tour(self) -> None:
        if self._guides and not self.preferences.toured:
            from rlgpt.console.screens.tour import TourScreen

            self.preferences.toured = True
            self.preferences.save(self.home)
            self.push_screen(TourScreen())

    def tell(self, sentence: str, severity: Severity = "information", *, bell: bool = False) -> None:
        """A notification of untrusted or own text, never read as markup; with a bell it also reaches a person
        who looks elsewhere (BEL, and OSC 9 where the terminal shows it)."""
        self.notify(clean(sentence), severity=severity, markup=False, timeout=6 if severity != "error" else 12)
        if bell:
            self.bell()
            self.write_escape(f"9;{clean(sentence)[:160]}")

    def write_escape(self, body: str) -> None:
        """An operating system command to the terminal; `body` is already clean."""
        if self._driver is not None and not self.is_headless and "\x1b" not in body and "\x07" not in body:
            self._driver.write(f"\x1b]{body}\x07")

    def set_terminal_title(self, words: str) -> None:
        self.write_escape(f"2;{clean(words)[:80]}")

    def settled(self) -> None:
        """What is loaded by now stays until the console is left: the garbage collector need not walk through it
        again and again, which took 40 ms in the middle of a key. Any thread."""
        if not self.is_headless:  # a test opens many consoles in one process
            gc.collect(1)
            gc.freeze()

    def left(self) -> None:
        """A session was left: collect all garbage now, frozen objects too, because the session's data can be freed."""
        if not self.is_headless:
            gc.unfreeze()
            gc.collect()
            gc.freeze()

    def hints(self) -> None:
        """Bring the footer up to date with the state."""
        from rlgpt.console.panes.bars import Footer

        for footer in self.screen.query(Footer):
            footer.update_hints()

    # ---- actions --------------------------------------------------------------------------------
    def action_help(self) -> None:
        from rlgpt.console.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

    def action_inbox(self) -> None:
        from rlgpt.console.screens.inbox import InboxScreen

        def chosen(ident: str | None) -> None:
            if ident:
                self.open_session(ident)

        self.push_screen(InboxScreen(), chosen)

    def action_next_theme(self) -> None:
        names = ["ansi-dark", "ansi-light"]
        if not self._few_colours:
            names = [t.name for t in THEMES] + ["ansi-dark", "nord", "gruvbox", "dracula", "solarized-light"]
        place = names.index(self.theme) if self.theme in names else -1
        self.use_theme(names[(place + 1) % len(names)])
        self.tell(f"theme {self.theme}")

    def use_theme(self, name: str) -> None:
        self.theme = name
        self.preferences.theme = name
        self.preferences.save(self.home)

    def action_save_screenshot(self) -> None:
        folder = self.home / "screenshots"
        name = time.strftime("rlgpt-%Y%m%d-%H%M%S.svg")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.save_screenshot(name, str(folder))
        except OSError as error:
            self.tell(f"the screen was not saved: {error}", "error")
        else:
            self.tell(f"saved {folder / name}")

    def action_yank(self) -> None:
        focused = self.focused
        text = focused.yank() if focused is not None and hasattr(focused, "yank") else ""
        if not text:
            self.tell("nothing to copy here", "warning")
            return
        from rlgpt.console.view.numbers import many

        copied = clean_text(text)
        self.copy_to_clipboard(copied)
        amount = f"copied {many(len(text), 'character')}, {many(text.count(chr(10)) + 1, 'line')}"

        def work() -> None:
            from rlgpt.console.clipboard import copy

            self.call_from_thread(self.tell, f"{amount} {copy(copied, self.home)}")

        self.run_worker(work, thread=True, exit_on_error=False)

    async def action_back(self) -> None:
        """One step back: what the screen can undo (`step_back`: zoom, filter), else the screen itself."""
        step_back = getattr(self.screen, "step_back", None)
        if (step_back is None or not step_back()) and len(self.screen_stack) > 2:
            self._close_top()

    def _close_top(self) -> None:
        """Close the screen on top; one that holds what was not sent (`unsent`, a sentence) only after a question."""
        from rlgpt.console.screens.dialogs import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self._drop_top()

        if unsent := getattr(self.screen, "unsent", ""):
            self.push_screen(Confirm("Leave", unsent, "Drop it"), answered)
        else:
            self._drop_top()

    def _drop_top(self) -> None:
        self.pop_screen()
        if len(self.screen_stack) == 2:  # a session, and all that was read of it
            self.set_timer(2.0, self.left)
            self._initial_session = (None, False, None)  # who has been in the list comes back to it

    def action_leave(self) -> None:
        """One step back; out of the console from the list, or from the session that it was opened on."""
        first = 2 if self._initial_session[0] is None else 3
        if len(self.screen_stack) > first:
            self._close_top()
        else:
            self._leaving = True
            self.exit(0)

    async def on_event(self, event: events.Event) -> None:
        """Keys that were typed after the one that leaves would open screens that are being taken down."""
        if not (self._leaving and isinstance(event, events.InputEvent)):
            await super().on_event(event)


def as_shell(app: ConsoleApp) -> Shell:
    """The app as its `Shell`, so that mypy checks that it implements the protocol."""
    return app


def _end_with_terminal() -> None:
    """Waits, on a thread of its own, until the terminal goes. A hang-up reaches only those whose controlling terminal
    it was; for the others it becomes an input that is always ready and always empty, which Textual reads for ever, and
    an output whose queue fills up until nothing else is done."""
    poll = select.poll()
    poll.register(sys.__stdin__ or 0, 0)
    if any(events & select.POLLHUP for _, events in poll.poll()):
        os._exit(128 + signal.SIGHUP)  # the signal itself is ignored under nohup


MOST_FILES = 4_096
"""Open at once: each session of a comparison takes five."""


def allow_many_files() -> None:
    """As many open files as this user may have, up to MOST_FILES: a shell starts with 1,024 on Linux, 256 on macOS."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):  # a system with a smaller limit of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def run(
    home: Path,
    session: str | None = None,
    replay: bool = False,
    cursor: int | None = None,
    read_only: bool = False,
    begin: Callable[[], str] | None = None,
    tour: bool = False,
) -> int:
    """Open the console; returns the exit code. Without a usable terminal: one sentence on stderr and 2."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(
            "rlgpt needs a terminal here; without one use its commands, such as `rlgpt sessions --json`.",
            file=sys.stderr,
        )
        return 2
    if not sys.stderr.isatty():
        print("The console is drawn on standard error, which is redirected here: leave the redirection out.")
        return 2
    term = os.environ.get("TERM", "")
    if term in ("dumb", "unknown", ""):
        why = f"This terminal cannot draw (TERM={term})" if term else "What this terminal can do is not known (no TERM)"
        print(
            f"{why}; set TERM, or use rlgpt's commands, such as `rlgpt sessions`.",
            file=sys.stderr,
        )
        return 2
    allow_many_files()
    threading.Thread(target=_end_with_terminal, name="end with terminal", daemon=True).start()
    app = ConsoleApp(home, session, replay=replay, cursor=cursor, read_only=read_only, begin=begin, tour=tour)
    with app.mirrors:
        code = app.run()
    return int(code or 0) if app.return_code in (0, None) else int(app.return_code)
