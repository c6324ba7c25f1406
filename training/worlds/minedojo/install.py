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
CLIENT_PACKAGES = (
    "numpy>=1.24,<3", "opencv-python-headless>=4.8,<6", "lxml>=4.9,<7", "jinja2>=3,<4", "pyyaml>=6,<7",
    "omegaconf>=2.3,<2.4", "Pyro4>=4.82,<5", "psutil>=5.9,<8", "importlib_resources>=5,<8", "mypy_extensions>=1,<2",
    "coloredlogs>=15,<16", "daemoniker>=0.2.3,<0.3", "msgpack>=1,<2",
)  # fmt: skip
"""What the client and its launch watchdog import, and the bridge's msgpack; found by importing them, because the
client's metadata also names a test runner, a Reddit client and two download tools."""
NEWEST, OLDEST = (3, 13), (3, 9)
UNAVAILABLE = 5
"""Exit code of the command line (README): 1 would mean a traceback."""


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


def _run(command: Sequence[str], task: str, cure: str) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:  # no such file, no program, no permission
        raise InstallFailed(f"{task} failed: {error.strerror or error}.", cure) from error
    if result.returncode:
        last = next((line for line in reversed(result.stderr.strip().splitlines()) if line.strip()), "no message")
        raise InstallFailed(f"{task} failed: {last[:300]}", cure)
    return result.stdout


def version_of(python: Path) -> tuple[int, int]:
    """Raises `InstallFailed` when `python` is not an interpreter that MineDojo can run under."""
    code = "import sys; print(*sys.version_info[:2])"
    cure = "rlgpt minedojo install --python /path/to/python3.11"
    output = _run([str(python), "-c", code], f"{python}", cure)
    try:
        major, minor = (int(part) for part in output.split())
    except ValueError as error:  # a program that is no Python and ends well
        raise InstallFailed(f"{python} is no Python: it does not tell its version.", cure) from error
    if not OLDEST <= (major, minor) <= NEWEST:
        raise InstallFailed(
            f"{python} is Python {major}.{minor}; MineDojo runs under {OLDEST[0]}.{OLDEST[1]} to "
            f"{NEWEST[0]}.{NEWEST[1]}.",
            cure,
        )
    return major, minor


def install(python: Path, same_venv: bool, report: Callable[[Line], None]) -> Path:
    """Make the environment and return its interpreter; `report` is called after each step. Raises `InstallFailed`."""
    version_of(python)
    if same_venv:
        interpreter = Path(sys.executable)
        report(Line("environment", True, f"The client goes into this environment, {interpreter.parent.parent}."))
    else:
        target = folder() / "venv"
        interpreter = target / "bin" / "python"
        if not interpreter.exists():
            shutil.rmtree(target, ignore_errors=True)  # left by an installation that was broken off
            _make_venv(python, target)
        report(Line("environment", True, f"MineDojo's own environment is {target}."))
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    same_command = "rlgpt minedojo install" + (" --same-venv" if same_venv else "")
    strategy = ["--upgrade-strategy", "only-if-needed"] if same_venv else []
    _run([*pip, *strategy, *CLIENT_PACKAGES], "Installing the client's packages", same_command)
    _run([*pip, "--no-deps", CLIENT], f"Installing {CLIENT}", same_command)
    report(Line("packages", True, f"{CLIENT} and the packages it imports are installed."))
    return interpreter


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

    def report(line: Line) -> None:
        if options.json:
            print(json.dumps(asdict(line)), flush=True)
        else:
            mark = "ok" if line.ok else "--"
            print(f"{mark}  {line.sentence}" + (f"  Mend: {line.cure}" if line.cure else ""), flush=True)

    def failed(line: Line) -> int:
        report(line)
        if options.json:  # as every command ends that fails (docs/json.md)
            print(json.dumps({"error": line.sentence, "exit_code": UNAVAILABLE}), flush=True)
            print(f"rlgpt: {line.sentence}", file=sys.stderr)
        return UNAVAILABLE

    try:
        interpreter = install(options.python, options.same_venv, report)
        client_catalogue = catalogue.refresh(_with_interpreter(interpreter))
    except InstallFailed as error:
        return failed(Line("install", False, str(error), error.cure))
    except MineDojoError as error:
        return failed(Line("client", False, str(error), "rlgpt minedojo install"))
    report(Line("client", True, f"The client answers: {len(client_catalogue['tasks'])} programmatic tasks."))
    if options.same_venv:
        report(Line("setting", True, f"Set RLGPT_MINEDOJO_PYTHON={interpreter} for sessions of MineDojo."))
    missing = [finding for finding in doctor.check(_with_interpreter(interpreter)) if not finding.ok]
    for finding in missing:
        report(Line(finding.item, False, finding.sentence, finding.cure))
    return 0


def _with_interpreter(interpreter: Path) -> Settings:
    return replace(from_environment(), python=str(interpreter))


if __name__ == "__main__":
    sys.exit(main())
