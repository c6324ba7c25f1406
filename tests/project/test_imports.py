"""What is really imported, at run time: the static contracts cannot see `importlib` or a lazy import."""

from __future__ import annotations

import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "stable_baselines3", "gymnasium", "crafter", "numba")


def modules(folder: str) -> list[str]:
    package = f"rlgpt.{folder}"
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None
    inside = pkgutil.walk_packages(list(spec.submodule_search_locations), f"{package}.")
    return [package, *(found.name for found in inside if not found.name.endswith("__main__"))]


def loaded_by(names: list[str]) -> set[str]:
    """Top-level modules (and those of rlgpt) in a fresh interpreter after importing `names`."""
    code = f"""
import importlib, sys
for name in {names!r}: importlib.import_module(name)
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = set(done.stdout.split())
    return {name.partition(".")[0] for name in found} | {".".join(name.split(".")[:2]) for name in found}


def test_the_whole_console_loads_without_what_sessions_do() -> None:
    assert not loaded_by(modules("console")) & {*HEAVY, "rlgpt.training", "rlgpt.agents"}


@pytest.mark.parametrize("folder", ["agents", "store", "prompts"])
def test_deciding_and_remembering_need_no_learning_and_no_terminal(folder: str) -> None:
    assert not loaded_by(modules(folder)) & {*HEAVY, "textual", "typer", "rlgpt.console", "rlgpt.training"}


def test_the_import_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and " 0 broken" in done.stdout, done.stdout + done.stderr


def test_a_supervisor_loads_nothing_but_the_standard_library_and_ours() -> None:
    ours = {"rlgpt", *(name for name in loaded_by(["rlgpt.training.supervisor"]) if name.startswith("rlgpt."))}
    found = loaded_by(["rlgpt.training.supervisor"]) - ours
    start = loaded_by(["sys"])
    assert not [name for name in found - start if name not in sys.stdlib_module_names and name.isidentifier()]


def test_a_worker_loads_without_a_terminal() -> None:
    assert not loaded_by(["rlgpt.training.worker"]) & {"textual", "typer", "rlgpt.console"}


def test_a_bare_rlgpt_reaches_the_console_without_typer_pydantic_or_sqlmodel() -> None:
    found = loaded_by(["rlgpt.console.cli", "rlgpt.console.commands.open", "rlgpt.console.app"])
    assert not found & {"typer", "pydantic", "sqlmodel", "sqlalchemy", "openai"}
