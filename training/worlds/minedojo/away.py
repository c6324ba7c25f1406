"""A game on another machine: `AwayBridge` is the worker's side, `BridgeSide` has the ordinary bridge there.

Where the client, the game and their ports are is the other machine's own (its RLGPT_MINEDOJO_PYTHON, _MALMO, _PORTS,
_MEMORY_MB); every other setting is the worker's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

from rlgpt.training.worlds.away.channel import GameLost, pack, unpack
from rlgpt.training.worlds.away.world import Games
from rlgpt.training.worlds.minedojo.bridge import Bridge, MineDojoError, close_orderly
from rlgpt.training.worlds.minedojo.launching import launch_lock
from rlgpt.training.worlds.minedojo.ports import PortLock, free_port
from rlgpt.training.worlds.minedojo.processes import ProcessRecord, sweep_folder
from rlgpt.training.worlds.minedojo.settings import Settings, folder, from_environment
from rlgpt.training.worlds.protocol import WorldFailed

RESOURCE = "minecraft"
"""What a node offers as many of as it has room for games."""
OF_THE_MACHINE = ("python", "malmo", "ports", "games", "memory_mb")
MARGIN = 10.0
"""Seconds after the other side's own time limit, whose sentence says more."""


class BridgeSide:
    """Answers `["open", settings]` and `["ask", operation, timeout, arguments]` with `["ok", ...]` or
    `["error", kind, sentence, last words]`."""

    def __init__(self) -> None:
        self._bridge: Bridge | None = None
        self._launch = ExitStack()
        self._port: PortLock | None = None

    def answer(self, message: bytes) -> bytes:
        kind, *arguments = unpack(message)
        try:
            return pack(["ok", self._open(*arguments) if kind == "open" else self._ask(*arguments)])
        except WorldFailed as error:
            self._launch.close()
            told = error if isinstance(error, MineDojoError) else MineDojoError("install", str(error))
            return pack(["error", told.kind, str(told), told.last_words])

    def _open(self, settings: dict[str, Any]) -> dict[str, Any]:
        """One launch at a time on this machine; it ends with the first reset."""
        sweep_folder(folder() / "runs")
        own = from_environment()
        if own.port_list:
            self._port = free_port(own.port_list)
        self._launch.enter_context(launch_lock())
        self._bridge = Bridge(replace(own, **settings))
        return {"about": self._bridge.about, "record": asdict(self._bridge.record)}

    def _ask(self, operation: str, timeout: float, arguments: dict[str, Any]) -> dict[str, Any]:
        assert self._bridge is not None, "open comes first"
        if operation == "make" and self._port is not None:
            arguments["port"] = self._port.port
        answer = self._bridge.ask(operation, timeout, **arguments)
        if operation == "reset":
            self._launch.close()
        return answer


class AwayBridge:
    """See `launching.GameBridge`."""

    def __init__(self, games: Games, settings: Settings, started: Callable[[ProcessRecord], None]) -> None:
        self._settings = settings
        shared = {name: value for name, value in asdict(settings).items() if name not in OF_THE_MACHINE}
        try:
            self._channel = games.open(f"{__name__}:BridgeSide", RESOURCE)
            self._channel.send(pack(["open", shared]))
        except GameLost as lost:
            raise MineDojoError("died", f"No game could be started: {lost}.") from lost
        told = self._answered(settings.hello_timeout + settings.reset_timeout)
        self.about: dict[str, Any] = told["about"] | {"malmo": ""}  # nothing of it is on this machine
        started(ProcessRecord(**told["record"]))

    def ask(self, operation: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        self.send(operation, **arguments)
        return self.answer(operation, timeout)

    def send(self, operation: str, **arguments: Any) -> None:
        is_short = operation in ("step", "jpeg", "close")
        timeout = self._settings.step_timeout if is_short else self._settings.reset_timeout
        try:
            self._channel.send(pack(["ask", operation, timeout, arguments]))
        except GameLost as lost:
            raise MineDojoError("died", f"The game was lost: {lost}.") from lost

    def answer(self, operation: str, timeout: float) -> dict[str, Any]:
        return self._answered(timeout)

    def _answered(self, timeout: float) -> dict[str, Any]:
        try:
            how, *told = unpack(self._channel.receive(timeout + MARGIN))
        except GameLost as lost:
            raise MineDojoError("died", f"The game was lost: {lost}.") from lost
        if how == "error":
            kind, sentence, last_words = told
            raise MineDojoError(kind, f"{sentence.rstrip('.')} ({self._channel.place}).", last_words)
        answer: dict[str, Any] = told[0]
        return answer

    def close(self, patience: float = 15.0) -> None:
        close_orderly(self, patience)

    def end(self) -> None:
        """The bridge's child there sees that it is alone, and ends the game."""
        self._channel.end()
