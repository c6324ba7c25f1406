"""A game on another machine: `AwayBridge` is the worker's side, `BridgeSide` has the ordinary bridge on that machine.

The settings that say where the client, the game and its ports are belong to the other machine (its
RLGPT_MINEDOJO_PYTHON, _MALMO, _PORTS, _MEMORY_MB); every other setting is the worker's.
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
"""The Ray resource of a node: it offers one for each game that it has room for."""
MACHINE_SETTINGS = ("python", "malmo", "ports", "games", "memory_mb")
TIMEOUT_MARGIN = 10.0
"""Seconds to wait beyond the other side's own time limit, because its error says more than a time-out here."""


class BridgeSide:
    """Answers `["open", settings]` and `["ask", operation, timeout, arguments]` with `["ok", ...]` or
    `["error", kind, sentence, last words]`."""

    def __init__(self) -> None:
        self._bridge: Bridge | None = None
        self._launch_lock = ExitStack()
        self._port: PortLock | None = None

    def answer(self, message: bytes) -> bytes:
        kind, *arguments = unpack(message)
        try:
            return pack(["ok", self._open(*arguments) if kind == "open" else self._ask(*arguments)])
        except WorldFailed as error:
            self._launch_lock.close()
            failure = error if isinstance(error, MineDojoError) else MineDojoError("install", str(error))
            return pack(["error", failure.kind, str(failure), failure.last_words])

    def _open(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Launch a game. Holds the launch lock of this machine until its first reset is done."""
        sweep_folder(folder() / "runs")
        own_settings = from_environment()
        if own_settings.port_list:
            self._port = free_port(own_settings.port_list)
        self._launch_lock.enter_context(launch_lock())
        self._bridge = Bridge(replace(own_settings, **settings))
        return {"about": self._bridge.about, "record": asdict(self._bridge.record)}

    def _ask(self, operation: str, timeout: float, arguments: dict[str, Any]) -> dict[str, Any]:
        assert self._bridge is not None, "open comes first"
        if operation == "make" and self._port is not None:
            arguments["port"] = self._port.port
        answer = self._bridge.ask(operation, timeout, **arguments)
        if operation == "reset":
            self._launch_lock.close()
        return answer


class AwayBridge:
    """See `launching.GameBridge`."""

    def __init__(self, games: Games, settings: Settings, on_start: Callable[[ProcessRecord], None]) -> None:
        self._settings = settings
        shared_settings = {name: value for name, value in asdict(settings).items() if name not in MACHINE_SETTINGS}
        try:
            self._channel = games.open(f"{__name__}:BridgeSide", RESOURCE)
            self._channel.send(pack(["open", shared_settings]))
        except GameLost as loss:
            raise MineDojoError("died", f"No game could be started: {loss}.") from loss
        opened = self._receive(settings.hello_timeout + settings.reset_timeout)
        self.about: dict[str, Any] = opened["about"] | {"malmo": ""}  # the game's folder is not on this machine
        on_start(ProcessRecord(**opened["record"]))

    def ask(self, operation: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        self.send(operation, **arguments)
        return self.answer(operation, timeout)

    def send(self, operation: str, **arguments: Any) -> None:
        is_short = operation in ("step", "jpeg", "close")
        timeout = self._settings.step_timeout if is_short else self._settings.reset_timeout
        try:
            self._channel.send(pack(["ask", operation, timeout, arguments]))
        except GameLost as loss:
            raise MineDojoError("died", f"The game was lost: {loss}.") from loss

    def answer(self, operation: str, timeout: float) -> dict[str, Any]:
        return self._receive(timeout)

    def _receive(self, timeout: float) -> dict[str, Any]:
        try:
            status, *values = unpack(self._channel.receive(timeout + TIMEOUT_MARGIN))
        except GameLost as loss:
            raise MineDojoError("died", f"The game was lost: {loss}.") from loss
        if status == "error":
            kind, sentence, last_words = values
            raise MineDojoError(kind, f"{sentence.rstrip('.')} ({self._channel.place}).", last_words)
        answer: dict[str, Any] = values[0]
        return answer

    def close(self, patience: float = 15.0) -> None:
        close_orderly(self, patience)

    def end(self) -> None:
        """Close the channel: the bridge's child there ends the game when its parent is gone."""
        self._channel.end()
