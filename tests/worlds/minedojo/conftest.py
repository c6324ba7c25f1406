"""The real client, installed once by the project's own command, and doubles of the game.

Everything that uses the client is marked `minedojo` and, as the first such run asks a package index, `network` (but
for the slow proofs): `make test` leaves it out, `.ci/run` runs it. The environment is made once and kept in the
user's cache (280 MB); `RLGPT_TEST_MINEDOJO=PYTHON` uses another one. Where no package index answers, the tests skip.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import pytest

from rlgpt.training.worlds.minedojo import install
from rlgpt.training.worlds.minedojo.env import MineDojoEnv
from rlgpt.training.worlds.minedojo.settings import Settings
from rlgpt.training.worlds.minedojo.world import MineDojoWorld
from rlgpt.training.worlds.optional_parts import WorldEvent

HERE = Path(__file__).parent
DOUBLE = HERE / "double.py"
USES_CLIENT = frozenset({"client_python", "double_world", "launching_world"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "minedojo: runs the real MineDojo client against a double of the game")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if USES_CLIENT & set(getattr(item, "fixturenames", ())):
            item.add_marker("minedojo")
            if item.get_closest_marker("slow") is None:
                item.add_marker("network")


@pytest.fixture(autouse=True, scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Nothing of a test reaches the user's data folder."""
    place = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLGPT_HOME", str(place))
        for name in [name for name in os.environ if name.startswith("RLGPT_MINEDOJO_")]:
            patch.delenv(name)
        yield place


@pytest.fixture(scope="session")
def client_python() -> Path:
    """An interpreter with the real MineDojo 0.1, made by `rlgpt minedojo install` and kept in the user's cache."""
    given = os.environ.get("RLGPT_TEST_MINEDOJO")
    if given:
        return Path(given)
    place = Path(platformdirs.user_cache_dir("rlgpt-tests")) / f"minedojo-{sys.version_info[0]}.{sys.version_info[1]}"
    python = place / "minedojo" / "venv" / "bin" / "python"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:  # tests that run side by side wait for the one that installs
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "made").exists():
            _skip_without_index()
            environment = os.environ | {"RLGPT_HOME": str(place)}
            made = subprocess.run(
                [sys.executable, "-P", "-m", install.__name__],
                env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert made.returncode == 0, made.stdout + made.stderr
            (place / "made").touch()
    return python


def _skip_without_index() -> None:
    """Skip where pip finds no version of the client at all: then no package index can be reached."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "--retries", "1",
         "--timeout", "20", install.CLIENT],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if asked.returncode and "(from versions: none)" in asked.stderr:
        pytest.skip("No package index can be reached, so the real MineDojo client cannot be installed.")


@dataclass
class Double:
    """One running double of the game."""

    process: subprocess.Popen[str]
    port: int

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def start_double() -> Iterator[Callable[..., Double]]:
    """Starts doubles: `start_double("--die-after", "20")`; all end with the module."""
    running: list[Double] = []

    def start(*options: str) -> Double:
        process = subprocess.Popen(
            [sys.executable, str(DOUBLE), "--port", "0", *options], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        running.append(Double(process, int(line.rsplit(" ", 1)[1])))
        return running[-1]

    yield start
    for double in running:
        double.kill()


@dataclass
class Played:
    """A world whose events are kept."""

    world: MineDojoWorld
    events: list[WorldEvent]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@pytest.fixture(scope="module")
def double_world(client_python: Path, start_double: Callable[..., Double]) -> Iterator[Callable[..., Played]]:
    """Makes worlds whose games are doubles: `double_world(doubles=2, options=("--seed", "3"), step_timeout=5)`."""

    made: list[MineDojoWorld] = []

    def make(doubles: int = 1, options: tuple[str, ...] = (), **changes: object) -> Played:
        ports = ",".join(str(start_double(*options).port) for _ in range(doubles))
        settings = Settings(python=str(client_python), ports=ports, **changes)  # type: ignore[arg-type]
        events: list[WorldEvent] = []
        made.append(MineDojoWorld(settings, events.append))
        return Played(made[-1], events)

    yield make
    for world in made:
        world.close()


@pytest.fixture
def launching_world(client_python: Path, tmp_path: Path) -> Iterator[Callable[..., Played]]:
    """Makes worlds that start their own game: the client's launcher runs a start script that runs the double."""

    made: list[MineDojoWorld] = []

    def make(*options: str, script: str = "", **changes: object) -> Played:
        malmo = tmp_path / "Malmo" / "Minecraft"
        malmo.mkdir(parents=True, exist_ok=True)
        start = malmo / "launchClient.sh"
        body = script or f'exec {sys.executable} {DOUBLE} {" ".join(options)} "$@"'
        start.write_text(f"#!/bin/bash\n{body}\n")
        start.chmod(0o755)
        settings = Settings(python=str(client_python), malmo=str(malmo), **changes)  # type: ignore[arg-type]
        events: list[WorldEvent] = []
        made.append(MineDojoWorld(settings, events.append))
        return Played(made[-1], events)

    yield make
    for world in made:
        world.close()


@pytest.fixture(scope="module")
def milk(double_world: Callable[..., Played]) -> Iterator[MineDojoEnv]:
    """The milk task against a double, one env for the whole module: starting one takes about 5 s."""
    env = double_world().world.make("harvest_milk_with_empty_bucket_and_cow")
    yield env
    env.close()
