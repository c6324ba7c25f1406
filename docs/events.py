"""Writes the list of events in json.md from store/events.py: `make docs`."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from rlgpt.store import event_payloads, events

PAGE = Path(__file__).with_name("json.md")
BEGIN = "<!-- events: written by `make docs` from store/events.py -->\n"
END = "<!-- end of events -->\n"
NAMES = {
    "str": "text", "int": "whole number", "float": "number", "bool": "true or false", "None": "null",
    "Sequence[str]": "list of texts", "JsonObject": "object", "Mapping[str, int]": "object of whole numbers",
    "ActionHost": '{"mode", "enforced"}', "Place": '{"work", "clock"?}', "Where": '{"node", "cpu", "versions"}',
}  # fmt: skip


def written() -> str:
    """The page as it has to be."""
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    return head + BEGIN + section() + END + rest.split(END)[1]


def section() -> str:
    lines = ["A key with `?` may be missing. Later versions may add kinds and keys.", ""]
    for kind, cls in event_payloads.KINDS.items():
        payload = ", ".join(f"{_key(f)}: {_type(f)}" for f in fields(cls))
        told = [f"`{name}`: {words}" for name, words in _told(cls).items()]
        lines.append(" ".join([f"- `{kind}` `{{{payload}}}`: {cls.__doc__}", *told]))
    return "\n".join(textwrap.fill(line, 120, subsequent_indent="  ") for line in lines) + "\n"


def _key(field: Field[Any]) -> str:
    return f'"{event_payloads.key_of(field)}"' + ("" if field.default is MISSING else "?")


def _type(field: Field[Any]) -> str:
    parts = [part.strip() for part in re.split(r"\|(?![^\[]*\])", str(field.type))]
    if field.default is None:
        parts.remove("None")
    return " or ".join(_name(part) for part in parts)


def _name(part: str) -> str:
    if part.startswith("Literal["):
        return " or ".join(f'"{word}"' for word in ast.literal_eval(part.removeprefix("Literal")))
    return NAMES[part]


def _told(cls: type[events.Event]) -> dict[str, str]:
    """What the source says below a field."""
    (tree,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(tree, ast.ClassDef)
    told = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                told[name] = " ".join(words.split())
    return told


if __name__ == "__main__":
    PAGE.write_text(written())
