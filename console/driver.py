"""Textual's driver with another way to learn of a new terminal size, and an end that leaves the terminal usable."""

from __future__ import annotations

import asyncio
import signal

from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.geometry import Size


class ConsoleDriver(LinuxDriver):
    """Sizes are read by the event loop, one after the other. Textual reads them in a handler that runs wherever the
    main thread is: of two that interrupt each other the older size is told last, which is what was left on the screen
    when a window was dragged on a busy machine."""

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._resized)
        loop.add_signal_handler(signal.SIGTERM, self._terminated)

    def _resized(self) -> None:
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self._app.post_message(Resize(size, size))

    def _terminated(self) -> None:
        """Leave as `q` does: ended at once, it leaves a shell without echo that is sent every move of the mouse."""
        self._app.exit(return_code=128 + signal.SIGTERM)
