"""What one folder hands to another is typed: no row, event or command crosses a border as `dict[str, Any]`.

Looks at the source of every public function, method and field that another folder imports. A JSON document may cross
as `JsonObject` (`store/row_types.py` says which these are), or where OPEN says why.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("agents", "console", "prompts", "store", "training")
UNTYPED = re.compile(r"\b(dict|Mapping|MutableMapping|list|Sequence|Iterable|tuple)\[(str, )?Any(, \.\.\.)?\]")
OPEN = {
    "rlgpt.store.settings": "flags and trees that become `Settings` here",
    "rlgpt.agents.client.make_client": "the settings of language models, which become `Endpoint`s",
    "rlgpt.agents.endpoint.endpoints": "the same",
    "rlgpt.agents.endpoint.Endpoint": "`extra`: fields of a request, as the operator's settings give them",
    "rlgpt.store.peers.Batch": "raw rows, copied as they are; the folder that takes them checks them",
    "rlgpt.store.reader.Reader": "`matrix`: plain values of the columns that the caller names",
}
"""Module or name -> why it may be given or give back a JSON document."""


@cache
def tree_of(module: str) -> ast.Module | None:
    path = ROOT.joinpath(*module.removeprefix("rlgpt.").split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text()) if file.exists() else None


def aliases(module: str) -> dict[str, str]:
    """Names that stand for a type in this module."""
    tree = tree_of(module)
    assert tree is not None
    return {
        node.targets[0].id: ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id != "JsonObject"
    }


def public(module: str) -> dict[str, ast.stmt]:
    tree = tree_of(module)
    assert tree is not None
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def crossing() -> dict[tuple[str, str], str]:
    """(module, name) that another folder imports -> a file that does."""
    found: dict[tuple[str, str], str] = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("rlgpt."):
                    continue
                module = str(node.module)
                if module.split(".")[1] == folder:
                    continue
                for name in (alias.name for alias in node.names):
                    if tree_of(f"{module}.{name}"):
                        found |= {(f"{module}.{name}", each): str(file) for each in public(f"{module}.{name}")}
                    else:
                        found[(module, name)] = str(file)
    return found


def annotations(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """(where, annotation) of all that a user of it sees."""
    if isinstance(node, ast.FunctionDef):
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        every += [arg for arg in (node.args.vararg, node.args.kwarg) if arg]
        yield from ((arg.arg, ast.unparse(arg.annotation)) for arg in every if arg.annotation)
        if node.returns:
            yield "return", ast.unparse(node.returns)
    elif isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                if not part.target.id.startswith("_"):
                    yield part.target.id, ast.unparse(part.annotation)
            elif isinstance(part, ast.FunctionDef) and (part.name == "__init__" or not part.name.startswith("_")):
                yield from ((f"{part.name}.{where}", told) for where, told in annotations(part))


def untyped(module: str, name: str) -> list[str]:
    node = public(module).get(name)
    if node is None:
        return []
    meant = aliases(module)
    found = []
    for where, told in annotations(node):
        spelt = re.sub(r"\b\w+\b", lambda word: meant.get(word[0], word[0]), told)
        if UNTYPED.search(spelt):
            found.append(f"{module}.{name} ({where}: {told})")
    return found


def test_what_crosses_a_border_is_typed() -> None:
    imported = crossing()
    assert ("rlgpt.store.reader", "Reader") in imported and ("rlgpt.store.events", "Command") in imported
    found = [
        sentence
        for module, name in sorted(imported)
        if module not in OPEN and f"{module}.{name}" not in OPEN
        for sentence in untyped(module, name)
    ]
    assert found == []


def test_what_may_cross_open_still_does() -> None:
    imported = crossing()
    for place in OPEN:
        names = [pair for pair in imported if place in (pair[0], ".".join(pair))]
        assert any(untyped(*pair) for pair in names), f"{place} is typed now"


@pytest.mark.parametrize("told", ["dict[str, Any]", "Mapping[str, Any] | None", "list[dict[str, Any]]", "list[Any]"])
def test_the_search_finds_what_it_looks_for(told: str) -> None:
    assert UNTYPED.search(told)
