"""What the agents are told: one Markdown (jinja2) template per role and question, and the world sheet.

`NAME.md` is filled by `render("NAME", ...)`; a name that a template uses and the caller forgot is an error.
Facts stand in fenced blocks named after them (```` ```json plan ````), so that a program finds them as easily
as a language model does.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2


def render(template: str, **fields: Any) -> str:
    """The prompt as text. Raises jinja2.UndefinedError for a missing field."""
    return _environment().get_template(template).render(**fields).strip()


def block(value: object, name: str) -> str:
    """`value` as a fenced JSON block called `name`, one entry a line at the top level."""
    return fence(_lines(value), f"json {name}")


def fence(text: str, info: str) -> str:
    """`text` fenced by more backticks than it holds, so that nothing inside can end the block."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{text}\n{ticks}"


def _lines(value: object) -> str:
    if isinstance(value, dict) and value:
        entries = (f"{_dump(str(key))}: {_dump(part)}" for key, part in value.items())
        return "{\n" + ",\n".join(entries) + "\n}"
    if isinstance(value, (list, tuple)) and value:
        return "[\n" + ",\n".join(map(_dump, value)) + "\n]"
    return _dump(value)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@cache
def _environment() -> jinja2.Environment:
    def source(name: str) -> str:
        return files(__name__).joinpath(f"{name}.md").read_text("utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # prompts are Markdown, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(block=block, fence=fence)
    return environment
