"""What is really imported, at run time: the static contracts cannot see `importlib` or a lazy import."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlgpt.training.service.questions import QUESTIONS

ROOT = Path(__file__).parents[2]
EXTRAS = ("psycopg", "ray")
HEAVY = ("torch", "stable_baselines3", "gymnasium", "crafter", "numba")


def modules(folder: str) -> list[str]:
    package = f"rlgpt.{folder}"
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None
    inside = pkgutil.walk_packages(list(spec.submodule_search_locations), f"{package}.")
    names = [package, *(found.name for found in inside if not found.name.endswith("__main__"))]
    return [name for name in names if not name.startswith("rlgpt.store.shared")]  # it needs an extra


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
    assert not loaded_by(modules("console")) & {*HEAVY, "rlgpt.training", "rlgpt.agents", *EXTRAS}


@pytest.mark.parametrize("folder", ["agents", "store", "prompts"])
def test_deciding_and_remembering_need_no_learning_and_no_terminal(folder: str) -> None:
    assert not loaded_by(modules(folder)) & {*HEAVY, "textual", "typer", "rlgpt.console", "rlgpt.training", *EXTRAS}


def test_the_import_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and " 0 broken" in done.stdout, done.stdout + done.stderr


def test_a_supervisor_loads_nothing_but_the_standard_library_and_ours() -> None:
    ours = {"rlgpt", *(name for name in loaded_by(["rlgpt.training.supervisor"]) if name.startswith("rlgpt."))}
    found = loaded_by(["rlgpt.training.supervisor"]) - ours
    start = loaded_by(["sys"])
    assert not [name for name in found - start if name not in sys.stdlib_module_names and name.isidentifier()]


def test_a_worker_loads_without_a_terminal_and_without_torch_until_it_learns() -> None:
    found = loaded_by(["rlgpt.training.worker"])
    assert not found & {"textual", "typer", "rlgpt.console", "torch", "stable_baselines3"}


def test_a_bare_rlgpt_reaches_the_console_without_typer_pydantic_or_sqlmodel() -> None:
    console = ("cli", "commands.open", "app", "screens.sessions", "screens.session")
    found = loaded_by([f"rlgpt.console.{name}" for name in console])
    assert not found & {"typer", "pydantic", "sqlmodel", "sqlalchemy", "openai"}


def imports_inside(folder: str) -> dict[str, set[str]]:
    """Module -> modules of the same folder that it imports, anywhere in it except for type checking alone."""
    files = {
        ".".join(("rlgpt", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in (ROOT / folder).rglob("*.py")
        if "book" not in path.parts  # sources of coded actions, which nothing imports
    }

    def imported(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in files else str(node.module)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                yield from imported(child)
        else:
            for child in ast.iter_child_nodes(node):
                yield from imported(child)

    return {name: set(imported(ast.parse(path.read_text()))) & set(files) - {name} for name, path in files.items()}


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, directly or over others."""
    reached = {name: set(direct) for name, direct in imports.items()}
    changed = True
    while changed:
        changed = False
        for names in reached.values():
            more = set().union(*(reached[name] for name in names)) - names
            names |= more
            changed |= bool(more)
    found = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in reached}
    return [list(circle) for circle in sorted(found) if circle]


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]


@pytest.mark.parametrize("folder", ["agents", "console", "prompts", "store", "training"])
def test_no_folder_imports_in_a_circle(folder: str) -> None:
    assert circles(imports_inside(folder)) == []


def test_every_module_that_the_console_starts_as_a_child_exists() -> None:
    """The console names them as texts, because it must not import them; and so it does with the service's questions."""
    sources = [path.read_text() for path in (ROOT / "console").rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'"(training(?:\.[a-z_]+)+)"', source)}
    assert len(named) >= 4
    missing = [
        n for n in named if not any((ROOT / f"{n.replace('.', '/')}{end}").is_file() for end in (".py", "/__main__.py"))
    ]
    assert missing == []
    asked = {name for source in sources for name in re.findall(r'\.ask\(\s*(?:[\w()]+,\s*)?"(\w+)"', source)}
    asked -= {"done_when"}  # a kind of source that a Checker is asked about
    assert len(asked) > 8 and asked <= QUESTIONS.keys()
