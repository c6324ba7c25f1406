"""`doctor`: what this machine has and lacks, each lack with its cure. `minedojo install` mends one of them."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata, util
from typing import Annotated

import typer

from rlgpt.console.commands import children, output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.words import Json, On
from rlgpt.console.view.doctor import conclusion
from rlgpt.console.view.numbers import many, size
from rlgpt.store import folder
from rlgpt.store.errors import StoreError
from rlgpt.store.home import home


@dataclass(frozen=True)
class Finding:
    area: str
    item: str
    ok: bool
    sentence: str
    cure: str = ""
    optional: bool = False
    """Sessions run without it."""


def register(app: typer.Typer) -> None:
    app.command()(doctor)
    family = typer.Typer(help="The optional world of real Minecraft.")
    family.command("install")(install)
    app.add_typer(family, name="minedojo")


def doctor(on: On = "", json: Json = False) -> None:
    """Say what is and is not available on this machine, or on the nodes of a Ray cluster, and how to mend it."""
    if on:
        _cluster(on, json)
        return
    findings: list[Finding] = []
    for area, look in AREAS.items():
        if not json:
            output.say(area)
        for finding in look():
            findings.append(finding)
            if not json:
                _tell(finding)
    good = all(f.ok or f.optional for f in findings)
    if json:
        output.document({"ok": good, "findings": [asdict(f) for f in findings]})
    else:
        output.say()
        output.say(conclusion([asdict(f) for f in findings]) + ".")
    if not good:
        raise typer.Exit(Exit.DIFFERENT)


def _cluster(on: str, json: bool) -> None:
    if not json:
        output.note(f"looking at the nodes of {on}; this takes some seconds …")
    answer = children.ask("cluster", {"on": on, "settings": {}})
    nodes = answer["nodes"]
    fit = sum(not node["fault"] for node in nodes)
    if json:
        output.document({"ok": fit > 0, **answer})
    else:
        rows = [
            [n["host"], f"{n['cpus']}", f"{n['gpus']}", n["cpu"] or "", size(n["free"] or 0), n["fault"] or "fits"]
            for n in nodes
        ]
        output.table(["node", "CPUs", "GPUs", "kind", "free", "sessions"], rows)
        output.say(f"{fit} of {many(len(nodes), 'node')} that compute can run sessions.")
    if not fit:
        raise typer.Exit(Exit.DIFFERENT)


def install(
    same_venv: Annotated[
        bool, typer.Option("--same-venv", help="Install into rlgpt's own environment, not into one of its own.")
    ] = False,
    python: Annotated[str, typer.Option(metavar="PYTHON", help="Interpreter to make the environment with.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Make the environment of MineDojo."""
    chosen = [
        *(["--same-venv"] if same_venv else []),
        *([f"--python={python}"] if python else []),
        *(["--json"] if json else []),
    ]
    raise typer.Exit(children.hand_over("training.worlds.minedojo.install", *chosen))


def _tell(finding: Finding) -> None:
    mark = "ok" if finding.ok else "--" if finding.optional else "NO"
    output.say(f"  {mark}  {finding.item}: {finding.sentence}")
    if finding.cure and not finding.ok:
        output.say(f"      fix: {finding.cure}")


def _python() -> Iterator[Finding]:
    yield Finding("rlgpt", "version", True, f"rlgpt {metadata.version('rlgpt')}, Python {platform.python_version()}")
    missing = [name for name in ("torch", "numba", "textual", "crafter") if util.find_spec(name) is None]
    sentence = f"missing: {', '.join(missing)}" if missing else "all libraries are there"
    yield Finding("rlgpt", "libraries", not missing, sentence, "make setup, or pip install rlgpt again")
    yield Finding("rlgpt", "sqlite", sqlite3.sqlite_version_info >= (3, 37), f"SQLite {sqlite3.sqlite_version}")


def _store() -> Iterator[Finding]:
    try:
        folder.check_place(folder.root())
    except StoreError as error:
        yield Finding("store", "place", False, str(error), "set RLGPT_HOME to a folder on a local disk")
        return
    except PermissionError:
        sentence = f"{home()} is out of reach: a folder above it may not be searched"
        yield Finding("store", "place", False, sentence, "set RLGPT_HOME to a folder that you may write")
        return
    kind = folder.file_system(folder.root()) or "a file system that does not tell its kind"
    nearest = next(place for place in (folder.root(), *folder.root().parents) if place.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        sentence = f"{home()} cannot be written: its sessions can be looked at, and none can run"
        yield Finding("store", "place", False, sentence, "set RLGPT_HOME to a folder that you may write")
        return
    free = size(folder.free_bytes(folder.root()))
    yield Finding("store", "place", True, f"{home()}, {kind}, {free} free, {many(len(folder.sessions()), 'session')}")


def _terminal() -> Iterator[Finding]:
    name = os.environ.get("TERM", "")
    terminal_size = _terminal_size()
    size_ = f"{terminal_size.columns}x{terminal_size.lines}" if terminal_size else "no terminal here, so no size"
    good = name not in ("", "dumb", "unknown")
    inside = ", inside tmux" if os.environ.get("TMUX") else ""
    sentence = f"TERM is {name!r}, {size_}{inside}"
    yield Finding("terminal", "terminal", good, sentence, "use a terminal, or the commands with --json", optional=True)


def _terminal_size() -> os.terminal_size | None:
    """Of the terminal that this process belongs to, wherever its output goes; None without one."""
    with contextlib.suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            terminal_size = os.get_terminal_size(terminal)
        finally:
            os.close(terminal)
        return terminal_size if terminal_size.columns and terminal_size.lines else None
    return None


def _gpu() -> Iterator[Finding]:
    built_without = "+cpu" in metadata.version("torch") if util.find_spec("torch") else True
    program = shutil.which("nvidia-smi")
    if program is None:
        sentence = "no NVIDIA GPU; small symbolic policies train faster on the CPU anyway"
        yield Finding("gpu", "gpu", False, sentence, optional=True)
        return
    words = [program, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20)
    names = "; ".join(result.stdout.strip().splitlines()) or result.stderr.strip()
    if result.returncode or built_without:
        why = f"{names}; torch is built without CUDA" if not result.returncode else f"nvidia-smi fails: {names}"
        yield Finding("gpu", "gpu", False, why, "install a CUDA build of torch 2.13.0", optional=True)
    else:
        yield Finding("gpu", "gpu", True, names, optional=True)


def _key() -> Iterator[Finding]:
    present = bool(os.environ.get("OPENAI_API_KEY"))
    sentence = "OPENAI_API_KEY is set" if present else "OPENAI_API_KEY is not set: --llm rules needs no key"
    cure = "set OPENAI_API_KEY, or use --base-url for a local server"
    yield Finding("language models", "key", present, sentence, cure, optional=True)


def _action_host() -> Iterator[Finding]:
    """Every attack of the table against a locked host of this machine."""
    output.note("  trying every attack of the table on a locked host; this takes some seconds …")
    area, cure = "action host", "use --host-mode process only for code that you trust"
    try:
        answer = children.ask("protections")
    except Failure as error:
        yield Finding(area, "attacks", False, f"the check itself failed: {error}")
        return
    for line in answer["lines"]:
        ok = line["enforced"]
        yield Finding(area, line["name"], ok, f"{line['protection']}: {line['how']}", "" if ok else cure)


def _minedojo() -> Iterator[Finding]:
    """Never needed for another world, so nothing that is missing counts as a fault."""
    try:
        needs = children.ask("minedojo_needs")
    except Failure as error:
        yield Finding("minedojo", "check", False, f"the check itself failed: {error}", optional=True)
        return
    for need in needs:
        yield Finding("minedojo", need["item"], need["ok"], need["sentence"], need["cure"], optional=True)


AREAS: Mapping[str, Callable[[], Iterator[Finding]]] = {
    "rlgpt": _python,
    "store": _store,
    "terminal": _terminal,
    "gpu": _gpu,
    "language models": _key,
    "action host": _action_host,
    "minedojo": _minedojo,
}
"""Quick ones first: each is told before the next is looked at."""
