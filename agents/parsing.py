"""Finds the JSON object in a reply's text and parses it as a contract.

Models put thoughts, prose, Markdown fences, an array or a wrapper around the object that was asked for, and write
JSON as Python or JavaScript programmers do (agents/relaxed.py). The last object that fits the contract counts, because
an answer follows its thoughts and its drafts. Where none fits, small slips are forgiven (agents/slips.py), and an end
that alone is missing is added (agents/broken.py). Code is also found outside of its object (agents/sources.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rlgpt.agents.broken import broken_object, closed
from rlgpt.agents.fences import blocks
from rlgpt.agents.relaxed import as_json, loaded, tidied
from rlgpt.agents.slips import forgiven, mistakes
from rlgpt.agents.sources import completed, source_alone

R = TypeVar("R", bound=BaseModel)

_THOUGHT = re.compile(r"</think(?:ing)?>|\[/THINK\]|<\|channel\|>final<\|message\|>")
"""Ends of what is thought aloud: DeepSeek, Qwen and alike; Magistral; gpt-oss without its parser."""
_STARTS = 2_000
"""Opening braces that are tried at most, the last ones."""
_MOST_READ = 20_000_000
"""Characters that are read in the search for objects: of a long reply that never closes what it opens, each brace could
make the rest be read again."""
_DEPTH = 3
"""Wrappers around the object that are looked into: an array, {"answer": {...}}, JSON inside of a JSON text."""
_DECODER = json.JSONDecoder(strict=False)


def parse(text: str, contract: type[R], forgiving: bool = True, closes: bool = False) -> tuple[R | None, str]:
    """(reply, "") or (None, what is wrong with it, written for the model). `closes`: whether the model had ended its
    reply by itself, so that brackets and braces that are missing at its very end are a slip."""
    if not text.strip():
        return None, "the reply is empty"
    answer = _after_thoughts(text)
    begin = len(text) - len(answer)
    nearest = ""
    for tree in _trees(text):
        for inner in _inside(tree):
            try:
                reply = contract.model_validate(inner)
            except ValidationError as invalid:
                nearest = nearest or "wrong schema: " + mistakes(invalid)
            else:
                return completed(reply, answer) if forgiving else reply, ""
    if not forgiving:
        return None, _fault(text, begin, nearest)
    if closes:
        try:
            return completed(contract.model_validate(closed(text, begin)), answer), ""
        except ValidationError:
            pass
    for inner in (inner for form in (answer, as_json(answer)) for tree in _trees(form) for inner in _inside(tree)):
        mended, fault = forgiven(inner, contract)
        if mended is not None:
            return completed(mended, answer), ""
        nearest = nearest or fault
    try:
        return contract.model_validate(source_alone(answer, contract)), ""
    except ValidationError:
        return None, _fault(text, begin, nearest)


def _fault(text: str, begin: int, nearest: str) -> str:
    """`nearest`: what is wrong with the object that could be read, if one could."""
    broken = broken_object(text, begin)
    return broken.fault if broken else nearest or _malformed(text)


def _after_thoughts(text: str) -> str:
    thought = list(_THOUGHT.finditer(text))
    return text[thought[-1].end() :] if thought else text


def _trees(text: str) -> Iterator[Any]:
    """Every JSON object that the text may mean, the likeliest first."""
    answer = _after_thoughts(text)
    for part in (answer, text) if answer is not text else (text,):
        yield from _whole(part)
        fenced = blocks(part)
        if fenced:  # what is behind the last of them is newer than all of them
            behind = part[fenced[-1].end :]
            yield from reversed(_objects(behind))
            yield from reversed(_objects(tidied(behind)))
        for block in reversed(fenced):
            yield from _whole(block.text)
        yield from reversed(_objects(part))
        yield from reversed(_objects(tidied(part)))


def _whole(text: str) -> Iterator[Any]:
    """The JSON value that the whole text is, if it is one."""
    for form in (text, tidied(text)):
        tree = loaded(form.strip())
        if isinstance(tree, dict | list | str):
            yield tree
            return


def _objects(text: str) -> list[Any]:
    """Every balanced object, in order, but not those inside of another."""
    starts = [match.start() for match in re.finditer(r"\{", text)][-_STARTS:]
    blocks, end, read = [], 0, 0
    for start in starts:
        if start < end:
            continue
        if read > _MOST_READ:
            break
        try:
            tree, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            place = getattr(error, "pos", len(text))
            read += (len(text) if text[place : place + 1] == '"' else place) - start  # a text is read to its end first
            continue
        blocks.append(tree)
    return blocks


def _inside(tree: Any, depth: int = _DEPTH) -> Iterator[dict[str, Any]]:
    """`tree` if it is an object, then the objects that it wraps, the last first."""
    if isinstance(tree, dict):
        yield tree
        inner = list(tree.values())
    elif isinstance(tree, list):
        inner = tree
    else:
        inner = [own] if isinstance(tree, str) and (own := loaded(tree.strip())) is not None else []
    for part in reversed(inner) if depth else ():
        yield from _inside(part, depth - 1)


def _malformed(text: str) -> str:
    start = max(text.find("{"), 0)
    try:
        _DECODER.raw_decode(text, start)
    except RecursionError:
        return "malformed JSON: it is nested too deeply"
    except ValueError as error:
        return f"malformed JSON: {error}" if "{" in text else "malformed JSON: there is no JSON object in the reply"
    return "malformed JSON: there is no JSON object in the reply"
