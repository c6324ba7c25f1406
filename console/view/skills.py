"""The skill library: the list, and one skill with its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlgpt.console.view import diff, syntax
from rlgpt.console.view.numbers import day_time, rate
from rlgpt.console.view.text import Entry, Line, columns, folded, line, spread, wrap

if TYPE_CHECKING:
    from rlgpt.store.skills import Skill


def entries(skills: Sequence[Skill], retired: Sequence[Skill], width: int) -> list[Entry]:
    if not skills and not retired:
        text = "No skills yet: a session keeps its accepted coded actions here when it ends. i reads a file of skills."
        return [Entry("note", tuple(wrap(text, width, "dim")), selectable=False)]
    out = [_entry(skill, width, False) for skill in skills]
    if retired:
        out.append(Entry("retired", (line(("Retired", "head")),), selectable=False))
        out += [_entry(skill, width, True) for skill in retired]
    return out


def _entry(skill: Skill, width: int, retired: bool) -> Entry:
    name = line((skill.name, "dim" if retired else "bold"))
    left = columns([(name, min(28, width - 17)), (line((skill.world, "dim")), 10)]) if width >= 40 else name
    lines = [
        spread(left, line((rate(skill.successes, skill.episodes, interval=False), "" if retired else "ok")), width)
    ]
    return Entry(
        skill.hash,
        tuple(lines),
        search=f"{skill.name} {skill.world} {skill.task} {skill.description}",
        yank=skill.source,
        fields={"skill": skill, "retired": retired},
    )


def detail(skill: Skill, tried: str, width: int) -> list[Line]:
    """What is known of one skill, then its source."""
    lines = folded(line((skill.name, "head"), (f"  {skill.hash[:12]}", "dim")), width, "  ")
    lines += wrap(skill.description, width)
    lines += folded(line(("world     ", "dim"), skill.world, ("   task ", "dim"), skill.task), width, "  ")
    measured = line(("measured  ", "dim"), (rate(skill.successes, skill.episodes), "bold"), (" in trials", "dim"))
    lines += folded(measured, width, "  ")
    lines += wrap(f"done when {skill.done_when}", width, "code_string")
    lines += wrap(f"kept {day_time(skill.kept_at)} by session {skill.session_id}", width, "dim")
    if tried:
        lines += wrap(tried, width, "accent")
    lines.append(line(""))
    for n, shown in enumerate(syntax.coloured(skill.source), 1):
        lines += folded(diff.numbered(n, shown), width, "      ↪ ")
    return lines
