"""The code pane: one version of a coded action against an earlier one, with errors and critique beside the line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rlgpt.console.sanitise import clean_lines
from rlgpt.console.view import diff, syntax
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry, Line, Span, folded, line, plain, spread, width_of, wrap
from rlgpt.console.view.words import NO_CODE, OUTCOMES, nothing
from rlgpt.store.history import Attempt, History

SPLIT_FROM = 110
"""Cells from which old and new stand side by side."""
_LINE = re.compile(r"\bline (\d+)")


@dataclass(frozen=True)
class Choice:
    """Which version is shown against which. None follows the newest."""

    sub_action: str | None = None
    version: int | None = None
    against: int | None = None
    """An earlier version; None: the one before; 0: none (plain source)."""


def chosen(h: History, choice: Choice) -> tuple[Attempt | None, Attempt | None]:
    """(shown, compared with)."""
    attempts = [a for a in h.attempts if choice.sub_action in (None, a.sub_action)]
    newest = [a for a in attempts if not _ended(a)] or attempts
    shown = next((a for a in reversed(attempts) if a.version == choice.version), None) if choice.version else None
    shown = shown or (newest[-1] if newest and choice.version is None else None)
    if shown is None:
        return None, None
    version = shown.version - 1 if choice.against is None else choice.against
    of_action = (a for a in h.attempts if a.sub_action == shown.sub_action and a is not shown)
    return shown, next((a for a in of_action if a.version == version), None)


def versions(h: History) -> list[Attempt]:
    return list(h.attempts)


def tabs(h: History, shown: Attempt | None, width: int) -> list[Line]:
    """One line that names the sub-actions with code, and one with the versions of the shown one."""
    if shown is None:
        return []
    newest = {a.sub_action: a for a in (*h.attempts, *(a for a in h.attempts if not _ended(a)))}
    names: list[Line] = []
    for name, attempt in newest.items():
        glyph, style = outcome(attempt)
        names.append((Span(glyph, style), Span(f"{name} ", "selected" if name == shown.sub_action else "dim")))
    parts: list[Line] = []
    versions = [attempt for attempt in h.attempts if attempt.sub_action == shown.sub_action]
    for attempt in versions:
        glyph, style = outcome(attempt)
        parts.append((Span(f" v{attempt.version}", "selected" if attempt is shown else ""), Span(glyph, style)))
    right = _strip(parts, versions.index(shown), width // 2)
    left = _strip(names, list(newest).index(shown.sub_action), width - width_of(right) - 1)
    return [spread(left, right, width)]


def _strip(parts: Sequence[Line], chosen: int, width: int) -> Line:
    """The parts side by side, in `width` cells; where they do not fit, those around the chosen one."""
    first, last = chosen, chosen + 1
    room = width - width_of(parts[chosen]) - 2
    while True:
        before = width_of(parts[first - 1]) if first else room + 1
        behind = width_of(parts[last]) if last < len(parts) else room + 1
        if min(before, behind) > room:
            break
        if behind <= room and (last - chosen <= chosen - first or before > room):
            last, room = last + 1, room - behind
        else:
            first, room = first - 1, room - before
    shown = [span for part in parts[first:last] for span in part]
    return line(("…" if first else "", "dim"), *shown, ("…" if last < len(parts) else "", "dim"))


def _ended(attempt: Attempt) -> bool:
    """An answer without code: the fast agent had nothing better to offer."""
    return bool(attempt.admission.get("rule") == NO_CODE)


def outcome(attempt: Attempt) -> tuple[str, str]:
    if _ended(attempt):
        return "·", "dim"
    if attempt.trial:
        return OUTCOMES.get(attempt.trial.outcome, ("?", "warn"))
    return ("⊘", "bad") if not attempt.admitted else ("…", "accent")


def facts(h: History, attempt: Attempt, before: Attempt | None, width: int) -> list[Line]:
    """Who wrote it, whether it was admitted, what the trials measured, which version acts, what the critic says."""
    left = [
        Span(f"{attempt.sub_action} v{attempt.version}", "bold"),
        Span(f" by {attempt.author}, iteration {attempt.iteration}", "dim"),
    ]
    if before:
        left.append(Span(f", against v{before.version}", "dim"))
    right: list[Span] = []
    if attempt.trial and not _ended(attempt):
        glyph, style = outcome(attempt)
        score = f" {attempt.trial.successes}/{attempt.trial.episodes}" if attempt.trial.episodes else ""
        right = [Span(f"{glyph} {attempt.trial.outcome}{score}", style)]
    elif attempt.admitted:
        right = [Span("admitted", "ok")]
    lines = [spread(left, right, width)]
    chosen = h.plan.chosen.get(attempt.sub_action) if h.plan else None
    if chosen:
        acts = f"v{chosen.version} acts" if chosen.version else "no code acts"
        lines += wrap(f"{acts}: {chosen.why}", width, "ok" if chosen.version == attempt.version else "dim", " ", most=2)
    rule = attempt.admission.get("rule", "")
    if _ended(attempt):
        lines.append(line((" no further version", "dim")))
    elif not attempt.admitted:
        lines += wrap(f"not admitted ({rule}): {attempt.admission.get('message', '')}", width, "bad", " ", most=3)
    if attempt.trial and attempt.trial.error and not _ended(attempt):
        lines += wrap(attempt.trial.error, width, "bad", " ", most=3)
    if attempt.verdict:
        verdict = attempt.verdict
        lines += wrap(f"{verdict.author}: {verdict.cause}", width, "warn", " ", most=2)
        if verdict.advice_fast:
            lines += wrap(f"advice: {verdict.advice_fast}", width, "dim", " ", most=2)
    if attempt.note:
        lines += wrap(attempt.note, width, "dim", " ", most=1)
    return lines


def notes(attempt: Attempt) -> dict[int, list[Line]]:
    """Notes to show beside lines of the source: the admission's rule, an exception, a critique that names a line."""
    notes_by_line: dict[int, list[Line]] = {}

    def beside(number: int, text: str, style: str) -> None:
        shown = clean_lines(text)[0]
        notes_by_line.setdefault(number, []).append(line(("     └ ", style), (shown, style)))

    number = attempt.admission.get("line")
    if not attempt.admitted and isinstance(number, int) and number > 0:
        beside(number, str(attempt.admission.get("message", "")), "bad")
    if attempt.trial and attempt.trial.error and (match := _LINE.search(attempt.trial.error)):
        beside(int(match[1]), attempt.trial.error, "bad")
    if attempt.verdict and (match := _LINE.search(attempt.verdict.cause + attempt.verdict.advice_fast)):
        beside(int(match[1]), f"{attempt.verdict.author}: {attempt.verdict.cause}", "warn")
    return notes_by_line


def source_lines(source: str, before: str | None, attempt: Attempt, width: int) -> list[Line]:
    """The body: coloured source, or its diff against `before`. Slow for long sources: not on the UI loop."""
    coloured = syntax.coloured(source)
    beside = notes(attempt)
    if before is None or not before.strip():
        out: list[Line] = []
        for number, shown in enumerate(coloured, 1):
            out.append(diff.numbered(number, shown))
            out += beside.get(number, [])
        return _all_folded(out, width)
    rows = diff.rows(clean_lines(before.rstrip("\n"), most=5_000), [plain(spans) for spans in coloured])
    if width >= SPLIT_FROM:
        return diff.split(rows, coloured, width, beside)
    return _all_folded(diff.unified(rows, coloured, beside), width)


def _all_folded(lines: list[Line], width: int) -> list[Line]:
    return [piece for spans in lines for piece in folded(spans, width, diff.FOLD)]


def empty(m: Moment, width: int) -> list[Entry]:
    text = nothing("No code", m.history.status == "ended", "the fast agent writes it once a plan is active.")
    plan = m.history.plan
    if plan and plan.items and all(item.mode == "rl" for item in plan.items):
        text = "The active plan leaves everything to RL: there is no code."
    return [Entry("note", tuple(wrap(text, width, "dim")), selectable=False)]


def yank(source: str | None, lines: Sequence[Line]) -> str:
    return source if source is not None else "\n".join(plain(spans) for spans in lines)
