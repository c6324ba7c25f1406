"""The messages of one question: system prompt and world sheet first (the same bytes every time), then the question.

A cap on their size: what matters least is shortened first, the oldest lines before the newest; then every long text,
the operator's last. What is asked is never cut: of a question that is too long a server can say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlgpt import prompts
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.dialect import Message
from rlgpt.agents.shortening import CUT, shortened
from rlgpt.store.history import Item

CAP = 120_000
"""Characters over all messages, some 30,000 tokens."""
_SHORTER = (8_000, 4_000, 2_000, 1_000, 500, 250)
"""Characters of one text, where a question is too long without what can be left out."""
_EXACT = ("name", "done_when", "trigger")
"""What is wrong unless it is whole."""
_OPERATORS = ("advice", "pins")


def messages(
    role: str,
    question: str,
    context: Context,
    *,
    scripts: Sequence[Mapping[str, Any]] = (),
    trim: Sequence[str] = (),
    cap: int = CAP,
    **fields: Any,
) -> list[Message]:
    """System and user message for `prompts/ROLE.md` and `prompts/QUESTION.md`.

    `scripts`: entries of the world's script book that the sheet shows. `trim` names the fields to shorten, least
    important first.
    """
    system = prompts.render(role) + "\n\n" + world_sheet(context, scripts)
    user = prompts.render(question, **fields)
    steps = [*((most, _OPERATORS) for most in _SHORTER), *((most, ()) for most in _SHORTER)]
    while len(system) + len(user) > cap:
        if name := next((name for name in trim if fields[name]), None):
            fields[name] = _shorter(fields[name])
        elif steps:
            most, whole = steps.pop(0)
            fields = {name: part if name in whole else shortened(part, most, _EXACT) for name, part in fields.items()}
        else:
            break
        user = prompts.render(question, **fields)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _shorter(value: Any) -> Any:
    """Half of a list, its newest; the two ends of a text; nothing of anything else."""
    if isinstance(value, list) and len(value) > 1:
        return value[-(len(value) // 2) :]
    if isinstance(value, str) and len(value) > 2000:
        quarter = len(value) // 4
        return f"{value[:quarter]}\n{CUT}\n{value[-quarter:]}"
    return type(value)()


_ELSEWHERE = ("primitives", "features", "view_doc", "library_doc", "dangers", "scripts")
"""Parts of a sheet that have a section of their own; the others are facts."""


def world_sheet(context: Context, scripts: Sequence[Mapping[str, Any]]) -> str:
    sheet, task = context.sheet, context.task
    facts = {
        "task": task.id,
        "prompt": task.prompt,
        "kind": task.kind,
        "horizon": task.horizon,
        "task_milestones": list(task.milestones),
        **{name: part for name, part in sheet.items() if name not in _ELSEWHERE},
    }
    return prompts.render(
        "world_sheet",
        facts=facts,
        primitives=sheet["primitives"],
        features=sheet.get("features") or {},
        view_doc=sheet["view_doc"],
        library_doc=sheet["library_doc"],
        dangers=sheet.get("dangers") or [],
        scripts=list(scripts),
    )


def contents(client: Client, role: str, context: Context) -> list[dict[str, Any]]:
    """The script book without its sources, for whoever plans; empty for a language model."""
    if not client.shows_scripts(role):
        return []
    book = context.sheet.get("scripts") or ()
    return [{k: v for k, v in s.items() if k != "sources"} | {"versions": len(s["sources"])} for s in book]


def entries(client: Client, role: str, context: Context, item: Item) -> list[Mapping[str, Any]]:
    """The script book's entries for one sub-action, sources included; empty for a language model."""
    if not client.shows_scripts(role):
        return []
    return [
        script
        for script in context.sheet.get("scripts") or ()
        if item.name in (script["name"], *script["gives"]) or item.done_when == script["done_when"]
    ]
