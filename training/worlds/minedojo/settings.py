"""Where the client and the game are, and how long to wait for them. Every field has an environment variable.

`RLGPT_MINEDOJO_<FIELD>` in upper case, such as `RLGPT_MINEDOJO_PYTHON`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rlgpt.store.home import home, named_path
from rlgpt.training.worlds.protocol import WorldFailed

PREFIX = "RLGPT_MINEDOJO_"


def folder() -> Path:
    """Where everything of this world lives: environment, task list, run directories."""
    return home() / "minedojo"


@dataclass(frozen=True)
class Settings:
    python: str = ""
    """Interpreter with MineDojo; empty: the environment made by `rlgpt minedojo install`."""
    malmo: str = ""
    """The `Malmo/Minecraft` folder with the built jar; empty: the one inside the installed client."""
    ports: str = ""
    """Comma-separated ports of games that already run; empty: the client starts its own."""
    image: str = "160x256"
    """Height x width of the rendered frame."""
    lidar_range: float = 50.0
    games: int = 4
    """Games at once when the client starts them; each needs about 3 GB and a core or two."""
    reset_timeout: float = 600.0
    step_timeout: float = 240.0
    hello_timeout: float = 120.0
    restarts: int = 5
    """Restarts in a row, without one finished episode between them, before the session stops."""
    remake_every: int = 250
    """Episodes after which the world is generated anew; fast resets in between. 0: never. The released trainer's 50
    epochs of 1,000 env steps are 250 episodes of its 200; a fast reset moves the player up to 200 blocks off anyhow."""
    memory_mb: int = 0
    """Address space limit of the bridge child (not of the game), 0 for none."""
    reward: str = "minedojo"
    """`minedojo`: the task's own reward. `paper`: 100 at success, -1 a step, and MineCLIP's where it is present."""
    patch: bool = True
    """Keep the client from copying its statistics and from building what nobody reads."""

    @property
    def interpreter(self) -> Path:
        return named_path(self.python) if self.python else folder() / "venv" / "bin" / "python"

    @property
    def image_size(self) -> tuple[int, int]:
        height, _, width = self.image.partition("x")
        return int(height), int(width)

    @property
    def port_list(self) -> tuple[int, ...]:
        return tuple(int(port) for port in self.ports.split(",") if port.strip())


class BadSetting(WorldFailed):
    """The argument is the sentence for the operator."""


def from_environment() -> Settings:
    """Settings with what the environment overrides. Raises `BadSetting` with the variable's name."""
    chosen: dict[str, Any] = {}
    for field in fields(Settings):
        text = os.environ.get(PREFIX + field.name.upper())
        if text is None:
            continue
        try:
            chosen[field.name] = _parse(text, type(field.default))
        except ValueError as error:
            raise BadSetting(f"{PREFIX}{field.name.upper()}={text!r} is not usable: {error}.") from error
    settings = Settings(**chosen)
    try:
        settings.image_size, settings.port_list  # noqa: B018 - parsed here so that a bad one is said at once
    except ValueError as error:
        raise BadSetting(f"{PREFIX}IMAGE must look like 160x256 and {PREFIX}PORTS like 9000,9001.") from error
    if min(settings.image_size) < 1 or any(not 0 < port < 65536 for port in settings.port_list):
        raise BadSetting(f"{PREFIX}IMAGE must be at least 1x1, and {PREFIX}PORTS numbers from 1 to 65535.")
    least = {"games": 1, "restarts": 0, "remake_every": 0, "memory_mb": 0}
    for name, low in least.items():
        if getattr(settings, name) < low:
            raise BadSetting(f"{PREFIX}{name.upper()} must be {low} or more, not {getattr(settings, name)}.")
    for name in ("lidar_range", "reset_timeout", "step_timeout", "hello_timeout"):
        if not 0 < getattr(settings, name) < math.inf:  # no comparison with NaN holds
            raise BadSetting(f"{PREFIX}{name.upper()} must be a number above 0, not {getattr(settings, name)}.")
    if settings.reward not in ("minedojo", "paper"):
        raise BadSetting(f"{PREFIX}REWARD must be minedojo or paper, not {settings.reward!r}.")
    return settings


def _parse(text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        if text.lower() in ("0", "false", "no", "off"):
            return False
        raise ValueError("it must be 1 or 0")
    return kind(text)
