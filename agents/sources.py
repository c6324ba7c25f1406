"""Finds the code of a reply where it does not stand in JSON as it should: in a block of Markdown, or with its quotation
marks unescaped."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.fences import blocks
from rlgpt.agents.relaxed import OBJECT, loaded

R = TypeVar("R", bound=BaseModel)

_DEFINES = re.compile(r"^[ \t]*def ", re.MULTILINE)
_TEXT = r'"(?>[^"\\]+|\\.)*+"'
_UNESCAPED = re.compile(
    rf"""(?P<head>\{{\s*"source"\s*:\s*)"(?P<source>.*)"(?P<tail>\s*,\s*"note"\s*:\s*{_TEXT}\s*\}})""", re.DOTALL
)
_NEXT_FIELD = re.compile(r'"\s*,\s*"note"\s*:\s*"')
_ESCAPE_OR_QUOTE = re.compile(r'\\.|"', re.DOTALL)


def completed(reply: R, answer: str) -> R:
    """A reply without code gets that of the one block of Python beside it."""
    if not isinstance(reply, CodeReply) or reply.source.strip() or not (source := _only_block(answer)):
        return reply
    try:
        return type(reply).model_validate({**reply.model_dump(), "source": source})
    except ValidationError:
        return reply


def source_alone(answer: str, contract: type[BaseModel]) -> Any:
    """An object with the answer's code, where it is code that was asked for and there is no doubt which it is."""
    if contract is not CodeReply:
        return None
    first = OBJECT.search(answer)
    source = _only_block(answer)
    if source and OBJECT.search(answer.replace(source, "")) is None:
        return {"source": source, "note": ""}
    found = _UNESCAPED.match(answer, first.start()) if first else None
    if found is None or len(_NEXT_FIELD.findall(found[0])) != 1:
        return None
    escaped = _ESCAPE_OR_QUOTE.sub(lambda mark: '\\"' if mark[0] == '"' else mark[0], found["source"])
    return loaded(f'{found["head"]}"{escaped}"{found["tail"]}')


def _only_block(answer: str) -> str:
    """The one block of Python that holds code; empty where there are more, or none."""
    found = [block.text for block in blocks(answer) if block.language in ("python", "py", "python3")]
    sources = [text for text in found if text.strip()]
    return sources[0] if len(sources) == 1 and _DEFINES.search(sources[0]) else ""
