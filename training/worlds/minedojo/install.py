"""`rlgpt minedojo install`: make the interpreter that runs MineDojo, and say what the game itself still needs.

    python -P -m rlgpt.training.worlds.minedojo.install [--same-venv] [--python PYTHON] [--json]

`pip install minedojo` fails with every current pip, because it pins gym 0.21, whose metadata is invalid. So the
client is installed without dependencies, beside the few packages that it imports, and the bridge child brings the
handful of gym classes it uses (`shim/gym`). Nothing is downloaded but Python packages; Java and the game are the
user's: `rlgpt doctor` names each missing part with its cure.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rlgpt.training.worlds.minedojo import catalogue, doctor
from rlgpt.training.worlds.minedojo.bridge import MineDojoError
from rlgpt.training.worlds.minedojo.settings import Settings, folder, from_environment

CLIENT = f"minedojo=={catalogue.CLIENT}"
NEEDED = (
    "numpy>=1.24,<3", "opencv-python-headless>=4.8,<6", "lxml>=4.9,<7", "jinja2>=3,<4", "pyyaml>=6,<7",
    "omegaconf>=2.3,<2.4", "Pyro4>=4.82,<5", "psutil>=5.9,<8", "importlib_resources>=5,<8", "mypy_extensions>=1,<2",
    "coloredlogs>=15,<16", "daemoniker>=0.2.3,<0.3", "msgpack>=1,<2",
)  # fmt: skip
"""What the client and its launch watchdog import, and the bridge's msgpack; found by importing, not from its
metadata, which also names a test runner, a Reddit client and two download tools."""
NEWEST, OLDEST = (3, 13), (3, 9)


@dataclass(frozen=True)
class Line:
    """One step of the installation, printed as it happens."""

    item: str
    ok: bool
    sentence: str
    cure: str = ""


class InstallFailed(RuntimeError):
    """The argument is the sentence, `cure` the command to try."""

    def __init__(self, sentence: str, cure: str) -> None:
        super().__init__(sentence)
        self.cure = cure


def _run(command: Sequence[str], what: str, cure: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = next((line for line in reversed(done.stderr.strip().splitlines()) if line.strip()), "no message")
        raise InstallFailed(f"{what} failed: {last[:300]}", cure)
    return done.stdout


def version_of(python: Path) -> tuple[int, int]:
    """Raises `InstallFailed` when `python` is not an interpreter that MineDojo can run under."""
    code = "import sys; print(*sys.version_info[:2])"
    said = _run([str(python), "-c", code], f"{python}", "rlgpt minedojo install --python /path/to/python3.11")
    major, minor = (int(part) for part in said.split())
    if not OLDEST <= (major, minor) <= NEWEST:
        raise InstallFailed(
            f"{python} is Python {major}.{minor}; MineDojo runs under {OLDEST[0]}.{OLDEST[1]} to "
            f"{NEWEST[0]}.{NEWEST[1]}.",
            "rlgpt minedojo install --python /path/to/python3.11",
        )
    return major, minor


def install(python: Path, same_venv: bool, say: Callable[[Line], None]) -> Path:
    """Make the environment and return its interpreter. Raises `InstallFailed`."""
    version_of(python)
    if same_venv:
        inside = Path(sys.executable)
        say(Line("environment", True, f"The client goes into this environment, {inside.parent.parent}."))
    else:
        target = folder() / "venv"
        inside = target / "bin" / "python"
        if not inside.exists():
            shutil.rmtree(target, ignore_errors=True)  # a half-made one
            _make_venv(python, target)
        say(Line("environment", True, f"MineDojo's own environment is {target}."))
    pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    again = "rlgpt minedojo install" + (" --same-venv" if same_venv else "")
    if same_venv:
        _run([*pip, "--upgrade-strategy", "only-if-needed", *NEEDED], "Installing the client's packages", again)
    else:
        _run([*pip, *NEEDED], "Installing the client's packages", again)
    _run([*pip, "--no-deps", CLIENT], f"Installing {CLIENT}", again)
    say(Line("packages", True, f"{CLIENT} and the packages it imports are installed."))
    return inside


def _make_venv(python: Path, target: Path) -> None:
    if python.resolve() == Path(sys.executable).resolve():
        venv.EnvBuilder(with_pip=True, symlinks=True).create(target)
        return
    _run([str(python), "-m", "venv", str(target)], "Making the environment", "rlgpt minedojo install --python PYTHON")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="rlgpt minedojo install", description="Make the environment of MineDojo.")
    parser.add_argument("--same-venv", action="store_true", help="install into rlgpt's own environment")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="interpreter to make it with")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args(arguments)

    def say(line: Line) -> None:
        if options.json:
            print(json.dumps(asdict(line)), flush=True)
        else:
            mark = "ok" if line.ok else "--"
            print(f"{mark}  {line.sentence}" + (f"  Mend: {line.cure}" if line.cure else ""), flush=True)

    try:
        inside = install(options.python, options.same_venv, say)
        known = catalogue.refresh(_with_interpreter(inside))
    except InstallFailed as error:
        say(Line("install", False, str(error), error.cure))
        return 1
    except MineDojoError as error:
        say(Line("client", False, str(error), "rlgpt minedojo install"))
        return 1
    say(Line("client", True, f"The client answers: {len(known['tasks'])} programmatic tasks."))
    if options.same_venv:
        say(Line("setting", True, f"Set RLGPT_MINEDOJO_PYTHON={inside} for sessions of MineDojo."))
    missing = [found for found in doctor.check(_with_interpreter(inside)) if not found.ok]
    for found in missing:
        say(Line(found.item, False, found.sentence, found.cure))
    return 0


def _with_interpreter(inside: Path) -> Settings:
    return replace(from_environment(), python=str(inside))


if __name__ == "__main__":
    sys.exit(main())
