"""Puts in front of a source the functions of other accepted code that it calls and does not define.

So sub-actions share functions and call each other and the skills of earlier sessions, and what comes of it is one
source like any other: admitted, stored, tried and replayed as a whole. This works on text: to parse what nobody has
admitted yet is the action host's business.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

FRONT = "# Functions of other accepted code, put here because the code below calls them."
_BLOCK = re.compile(r"(?:def\s+(\w+)|(\w+)\s*(?::[^=\n]{1,80})?=(?!=))")
_INSIDE = (" ", "\t", ")", "]", "}", "#")
"""What a line at the top level that goes on with a block begins with."""
_BOUND = re.compile(r"\bdef\s+(\w+)|(?<![\w.])(\w+)\s*(?::[^=\n]{1,80})?=(?!=)|\bfor\s+(\w+)\b")
_CALL = re.compile(r"(?<![\w.])(\w+)\s*\(")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_COMMENT = re.compile(r"#.*")
_LINE_END = re.compile(r"\r\n|\r|\n")
"""As Python has it; `splitlines` also ends lines at what may stand in a comment, such as U+2028."""
_LONG_TEXT = re.compile("\"{3}|'{3}")
_MOST = 16_384
"""Characters of a source; the action host takes no longer one."""
_CLASH = (
    "{name} is called, and it needs the {clash} of its own source, which means something else here: give your {clash} "
    "another name, or define {name} yourself"
)
_OWN = ("available", "ignore_alarm")
"""What these names mean belongs to one action."""


class Linked(NamedTuple):
    source: str
    clash: str
    """Why a function that is called could not be put in front, a sentence; empty if none."""


def link(source: str, others: Sequence[str], taken: Collection[str] = ()) -> Linked:
    """`others`: sources whose functions may be called, the first with a name counts; `taken`: names of the library."""
    if len(source) > _MOST:
        return Linked(source, "")
    text = _COMMENT.sub("", source)
    own = _bound(text)
    # What is bound inside of a function, or named in a call, means nothing to the functions in front.
    at_top = _bound("\n".join(line for line in _LINE_END.split(text) if not line.startswith((" ", "\t"))))
    homes = [_blocks(other[:_MOST]) for other in others]
    front: dict[str, str] = {}
    for name in dict.fromkeys(_CALL.findall(text)):
        home = next((home for home in homes if name in home), None)
        if home is None or name in own or name in taken:
            continue
        needed = _needed(name, home)
        if clash := next((n for n in needed if n in at_top or front.get(n, home[n]) != home[n]), ""):
            return Linked(source, _CLASH.format(name=name, clash=clash))
        front |= {n: home[n] for n in needed}
    if not front:
        return Linked(source, "")
    return Linked("\n\n\n".join([FRONT, *front.values(), source.lstrip("\n")]), "")


def signature(source: str, name: str = "") -> str:
    """How the action `name` of a source is called, such as `get_wood(view, count)`: what it needs, or `available`, may
    be written after it. The last function where none has that name."""
    found: list[tuple[str, str]] = re.findall(r"^def\s+(\w+)\s*(\([^)]*\))", source, re.M)
    named = [function for function in found if function[0] == name] or found
    return "".join(named[-1]) if named else ""


def _bound(text: str) -> set[str]:
    return {name for found in _BOUND.findall(text) for name in found if name}


def _blocks(source: str) -> dict[str, str]:
    """Functions and constants at the top level, by name, in their order."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    open_text = ""
    for line in _LINE_END.split(source):
        if line and not open_text and not line.startswith(_INSIDE):
            begun = _BLOCK.match(line)
            name = next((part for part in begun.groups() if part), "") if begun else ""
            current = []
            if name and name not in _OWN:
                current = found[name] = []
        current.append(line)
        for marks in _LONG_TEXT.findall(line if open_text else _COMMENT.sub("", line)):
            open_text = "" if marks == open_text else open_text or marks
    return {name: "\n".join(lines).rstrip() for name, lines in found.items()}


def _needed(name: str, home: dict[str, str]) -> list[str]:
    """It and what it names of its own source, directly or not, in the order of that source."""
    todo, seen = [name], {name}
    while todo:
        for mentioned in _NAME.findall(home[todo.pop()]):
            if mentioned in home and mentioned not in seen:
                seen.add(mentioned)
                todo.append(mentioned)
    return [each for each in home if each in seen]
