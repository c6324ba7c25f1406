from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("console", "agents", "training", "store", "prompts")


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_holds_every_source_file_of_the_mapped_folders(wheel: Path) -> None:
    inside = set(names(wheel))
    sources = {f"rlgpt/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert sources and sources <= inside


def test_the_wheel_holds_every_template_stylesheet_and_table(wheel: Path) -> None:
    inside = set(names(wheel))
    parts = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file())
    kept = {f"rlgpt/{path.relative_to(ROOT)}" for path in parts if "__pycache__" not in path.parts}
    assert kept == {name for name in inside if name.startswith("rlgpt/")}


def test_every_folder_of_python_files_is_a_package() -> None:
    """But script books, whose files are read as text."""
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    folders = {path.parent for path in files if path.parent.parent.name != "book"}
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]


def test_the_wheel_holds_nothing_outside_its_own_package(wheel: Path) -> None:
    assert {name.split("/")[0] for name in names(wheel)} == {"rlgpt", "rlgpt-0.1.0.dist-info"}


def test_dependencies_have_bounds_and_constraints_name_exact_versions_of_each() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["dev"]]
    for own in [requirement for requirement in needed if requirement.startswith("rlgpt[")]:  # an extra of ours
        needed.remove(own)
        needed += extras[own.partition(";")[0].removeprefix("rlgpt[").removesuffix("]")]
    lines = (ROOT / "constraints.txt").read_text().split()
    exact = {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    assert len(exact) == len(lines)
    for requirement in needed:
        name = requirement.split("==")[0].split(">")[0].split("[")[0]
        assert name.lower() in exact, f"{name} is not in constraints.txt"
        assert "==" in requirement or "<" in requirement, f"{requirement} has no upper bound"


def test_decoy_folders_are_not_imported_instead_of_the_package(installed: Path, tmp_path: Path) -> None:
    for folder in FOLDERS:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("raise SystemExit('the decoy was imported')\n")
    code = "import rlgpt.store, rlgpt.agents, rlgpt.training; print(rlgpt.store.__file__)"
    done = subprocess.run([installed, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(installed.parents[1])


SMALL = {
    "RLGPT_NUMBA": "0",  # compiling for a new folder takes longer than the whole session
    "RLGPT_LOOP__ITERATIONS": "0",
    "RLGPT_LOOP__DEV_FIRST": "2",
    "RLGPT_LOOP__DEV_MORE": "0",
    "RLGPT_LOOP__TEST_EPISODES": "3",
}


@pytest.mark.network
def test_a_headless_session_runs_to_its_end_beside_a_package_named_agents(installed: Path, tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--python", str(installed), "install", "-q", "--no-deps", "--retries", "1")
    got = subprocess.run([*pip, "openai-agents"], capture_output=True, text=True)
    if got.returncode != 0:
        pytest.skip(f"No package index gives openai-agents: {got.stderr.strip().splitlines()[-1]}")
    for folder in ("agents", "training", "store"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("raise SystemExit('the decoy was imported')\n")
    command = [installed.parent / "rlgpt", "run", "make_wood_pickaxe", "--llm", "rules", "--headless", "--seed", "1"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **SMALL, "RLGPT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " succeeded: " in done.stdout.splitlines()[-1] or " finished: " in done.stdout.splitlines()[-1]
    code = "from importlib.util import find_spec as f; print(f('agents').origin, f('rlgpt.agents').origin)"
    both = subprocess.run([installed, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    theirs, ours = both.stdout.split()
    assert theirs != ours and Path(theirs).is_relative_to(installed.parents[1])
