"""The messages of one question: system prompt and world sheet first (the same bytes every time), then the question.

A hard cap on their size: what matters least is shortened first, the oldest lines before the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlgpt import prompts
from rlgpt.agents.client import Message
from rlgpt.agents.context import Context

CAP = 120_000
"""Characters over all messages, some 30,000 tokens."""


def messages(
    role: str,
    question: str,
    context: Context,
    *,
    scripts: bool = False,
    trim: Sequence[str] = (),
    cap: int = CAP,
    **fields: Any,
) -> list[Message]:
    """System and user message for `prompts/ROLE.md` and `prompts/QUESTION.md`.

    `scripts`: the sheet holds the world's script book. `trim` names the fields to shorten, least important first.
    """
    system = prompts.render(role) + "\n\n" + world_sheet(context, scripts)
    user = prompts.render(question, **fields)
    while len(system) + len(user) > cap:
        name = next((name for name in trim if fields[name]), None)
        if name is None:
            user = user[: max(0, cap - len(system))]
            break
        fields[name] = _shorter(fields[name])
        user = prompts.render(question, **fields)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _shorter(value: Any) -> Any:
    """Half of a list, its newest; the two ends of a text; nothing of anything else."""
    if isinstance(value, list) and len(value) > 1:
        return value[-(len(value) // 2) :]
    if isinstance(value, str) and len(value) > 2000:
        quarter = len(value) // 4
        return f"{value[:quarter]}\n[... shortened ...]\n{value[-quarter:]}"
    return type(value)()


_ELSEWHERE = ("primitives", "features", "view_doc", "library_doc", "dangers", "scripts")
"""Parts of a sheet that have a section of their own; the others are facts."""


def world_sheet(context: Context, scripts: bool) -> str:
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
        scripts=list(sheet.get("scripts") or ()) if scripts else [],
        book=scripts,
    )
