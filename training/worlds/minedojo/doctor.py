"""Checks of what MineDojo needs on this machine, for `rlgpt doctor`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from rlgpt.training.worlds.minedojo import catalogue, mineclip
from rlgpt.training.worlds.minedojo.bridge import Bridge, MineDojoError
from rlgpt.training.worlds.minedojo.settings import BadSetting, Settings, folder, from_environment

HEAP_GB = 3
"""Minecraft is started with a 2 GB heap; plan 3 GB for each instance."""
JAR = Path("build") / "libs" / "MalmoMod-0.37.0-fat.jar"
DOCUMENT = "see docs/minedojo.md"


@dataclass(frozen=True)
class Finding:
    item: str
    ok: bool
    sentence: str
    cure: str = ""
    """The command that mends it, or the document that says how."""
    optional: bool = False


def java() -> Finding:
    """The `java` that the game's start script would run must be version 8."""
    program = shutil.which("java")
    cure = "conda install -c conda-forge openjdk=8"
    if program is None:
        return Finding("java", False, "No java is on PATH; the game needs JDK 8.", cure)
    try:
        result = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("java", False, f"{program} cannot be run: {error}.", cure)
    version_match = re.search(r'version "([^"]+)"', result.stderr + result.stdout)
    if version_match is None:
        return Finding("java", False, f"{program} does not say its version; the game needs JDK 8.", cure)
    version = version_match[1]
    if not version.startswith("1.8."):
        return Finding("java", False, f"{program} is Java {version}; the game needs JDK 8 (1.8).", cure)
    if shutil.which("javac") is None:
        return Finding("java", True, f"{program} is Java {version} (no javac: enough to run a built jar).")
    return Finding("java", True, f"{program} is JDK {version}.")


def display() -> Finding:
    """An X display, or xvfb with MINEDOJO_HEADLESS=1."""
    if os.environ.get("MINEDOJO_HEADLESS") == "1":
        if shutil.which("xvfb-run"):
            return Finding("display", True, "Headless: the game is drawn into xvfb.")
        return Finding("display", False, "MINEDOJO_HEADLESS=1 is set but xvfb-run is missing.", "sudo apt install xvfb")
    if os.environ.get("DISPLAY"):
        return Finding("display", True, f"The game is drawn on display {os.environ['DISPLAY']}.")
    return Finding(
        "display", False, "There is no display for the game.", "sudo apt install xvfb && export MINEDOJO_HEADLESS=1"
    )


def memory() -> Finding:
    """Free memory for one instance."""
    free = psutil.virtual_memory().available / 2**30
    ok = free >= HEAP_GB
    sentence = f"{free:.1f} GB of memory are free; each Minecraft needs about {HEAP_GB} GB"
    return Finding("memory", ok, f"{sentence}: room for {int(free // HEAP_GB)}.", "" if ok else "close other programs")


def jar(malmo: Path) -> Finding:
    """The built game; without it the start script builds with gradle, which fails today."""
    path = malmo / JAR
    if path.is_file() and path.stat().st_size:
        return Finding("game", True, f"The built game is {path} ({path.stat().st_size / 2**20:.0f} MB).")
    return Finding(
        "game", False, f"The built game is missing ({path}); gradle builds of it fail since 2023.",
        f"cp MalmoMod-0.37.0-fat.jar {path.parent}/  ({DOCUMENT}, section 'The game')",
    )  # fmt: skip


def client(settings: Settings) -> Iterator[Finding]:
    """The interpreter, the client in it, and the game's folder that it names."""
    try:
        bridge = Bridge(settings)
    except MineDojoError as error:
        yield Finding("client", False, str(error), "rlgpt minedojo install")
        return
    try:
        about = bridge.about
        bridge.ask("close", 30.0)
    finally:
        bridge.end()
    ok = about["minedojo"] == catalogue.CLIENT
    yield Finding(
        "client", ok, f"MineDojo {about['minedojo']} under Python {about['python']}, numpy {about['numpy']}.",
        "" if ok else "rlgpt minedojo install",
    )  # fmt: skip
    if not settings.port_list:
        yield jar(Path(about["malmo"]))


def disk() -> Finding:
    """Each instance copies the game's folder (about 1 GB with its caches)."""
    existing = folder()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free / 2**30
    ok = free >= 3
    cure = "" if ok else "rlgpt store prune"
    return Finding("disk", ok, f"{free:.0f} GB are free for run directories in {folder()}.", cure)


def clip() -> Finding:
    missing = mineclip.available()
    cure = DOCUMENT if missing else ""
    return Finding("mineclip", not missing, missing or "MineCLIP is offered.", cure, optional=True)


def check(settings: Settings) -> Iterator[Finding]:
    """All findings, in the order in which an operator mends them."""
    yield from client(settings)
    if settings.port_list:
        yield Finding("game", True, f"Games that already run are used: ports {settings.ports}.")
    else:
        yield java()
        yield display()
        yield memory()
        yield disk()
    yield clip()


def findings() -> Iterator[Finding]:
    """All findings with the settings of the environment variables."""
    try:
        settings = from_environment()
    except BadSetting as error:
        yield Finding("settings", False, str(error), "unset it")
        return
    yield from check(settings)
