"""The log and the calls of the model, as lists."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rlgpt.console.view import live, spending
from rlgpt.console.view.happenings import LogLine
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import count, duration, many, money, time_of_day
from rlgpt.console.view.text import Entry, Line, fit, folded, has_words, line, plain, spread, wrap
from rlgpt.console.view.words import ROLES, RULES, asked_for, nothing
from rlgpt.store.events import Probed
from rlgpt.store.row_types import LlmCallRow

LEVELS = ("debug", "info", "warning", "error")
LEVEL = "info"
"""The least level shown, if nobody chose another."""
_STYLE = {"debug": "dim", "info": "", "warning": "warn", "error": "bad", "critical": "bad"}
_SHORT = {"warning": "warn"}
MOST = 2_000
"""Rows a list pane shows; older ones are counted, and said."""


def log_line(row: LogLine) -> Line:
    """A row of the log (`happenings.logged`), as the pane shows it and `rlgpt logs` prints it."""
    level, style = str(row["level"]), _STYLE.get(str(row["level"]), "")
    level_word = "" if level == "info" else f"{_SHORT.get(level, level)} "
    fields = _fields(row)
    return line(
        (time_of_day(row["at"]) + " ", "dim"),
        (level_word, style or "dim"),
        (" ".join(str(row["event"]).split()), style),
        (f"  {fields}" if fields else "", "dim"),
    )


def at_level(row: LogLine, level: str) -> bool:
    """Whether a row of the log is shown where `level` is the least level shown."""
    return _rank(str(row["level"])) >= LEVELS.index(level)


def log_rows(m: Moment, level: str, wanted: str = "") -> list[LogLine]:
    """Those at `level` and above that have the `wanted` words of a filter."""
    rows = (row for row in m.logs if at_level(row, level))
    return [row for row in rows if not wanted or has_words(_said(row), wanted)]


def log_entries(
    m: Moment, width: int, level: str = LEVEL, expanded: frozenset[str] = frozenset(), wanted: str = ""
) -> list[Entry]:
    """Newest at the bottom, at `level` and above. `wanted`: what the pane filters by, which older rows may have too."""
    rows = log_rows(m, level, wanted)
    out = _left_out(len(rows))
    for row in rows[-MOST:]:
        key = f"log:{row['seq']}"
        if key in expanded:
            style = _STYLE.get(str(row["level"]), "")
            lines = [line((time_of_day(row["at"]), "dim"), (f" {row['level']}", style or "dim"))]
            lines += wrap(str(row["event"]), width, style, "      ")
            lines += [x for k, v in row["fields"].items() for x in wrap(f"{k}: {v}", width, "dim", "      ")]
        elif at_level(row, "warning"):
            lines = folded(log_line(row), width, "         ")
        else:
            lines = [fit(log_line(row), width)]
        text = _said(row)
        out.append(Entry(key, tuple(lines), search=text, yank=text, seq=row["seq"]))
    if not out:
        out.append(Entry("note", (line((f"Nothing logged at {level} or above.", "dim")),), selectable=False))
    return out


def call_rows(m: Moment, wanted: str = "") -> list[LlmCallRow]:
    """The last row of each call that has the `wanted` words of a filter."""
    return [call for call in merged(m.calls) if not wanted or has_words(_asked(call, m), wanted)]


def call_entries(m: Moment, width: int, expanded: frozenset[str] = frozenset(), wanted: str = "") -> list[Entry]:
    """One entry a call, newest at the bottom; expanded with prompt and reply. `wanted` as in `log_entries`."""
    every = merged(m.calls)
    calls = call_rows(m, wanted) if wanted else every
    spent = m.history.spent
    who = RULES if m.rules else "LLM"
    head = line(
        (f"{many(spent.calls, 'call')} to the {who}", "bold"),
        (f"   {count(spent.tokens)} tokens   {money(spent.cost, spent.unknown_price)}", "dim"),
    )
    table = spending.lines(every, width, m.rules)
    out = [Entry("head", (head, *table), selectable=False), *_left_out(len(calls))]
    under_way = {call.call: call for call in m.worker.calls} if m.live else {}
    tried: dict[tuple[str, str], list[Probed]] = {}
    for probe in m.probes:
        tried.setdefault((probe.step, probe.request_hash), []).append(probe)
    for call in calls[-MOST:]:
        key = f"call:{call['call']}"
        answered = call["state"] == "answered"
        tokens = "" if m.rules else f"{count(call['tokens_in'])}→{count(call['tokens_out'])} "
        spoken = under_way.get(str(call["call"]))
        if call["state"] == "sent":
            tokens = "waiting "
        price = "unknown" if call["cost"] is None else money(call["cost"])
        cost = "" if m.rules or call["state"] == "sent" else f"{price} "
        left = _title(call, m)
        right = live.tail(spoken, m.now) if spoken else line((f"{tokens}{cost}{duration(call['seconds'])}", "dim"))
        lines: list[Line] = [spread(left, right, width)]
        if call["error"]:
            lines += wrap(str(call["error"]), width, "bad", "  ", most=0 if key in expanded else 2)
        for probe in tried.get((call["step"], call["request_hash"]), ()) if answered else ():
            answer = f"{probe.tool}: {probe.told}" if key in expanded else probe.headline
            lines += _wrapped(f"tries {answer}", width, "dim", 60 if key in expanded else 2)
        if spoken:
            lines += live.lines(spoken, width)
        if key in expanded:
            for name, ref in (("prompt", call["request_hash"]), ("reply", call["reply_hash"])):
                if ref:
                    lines.append(line((f"  {name}", "head")))
                    text = m.text(ref)
                    lines += _wrapped(
                        "reading…" if text is None else readable(text), width, "dim" if name == "prompt" else "", 400
                    )
        out.append(
            Entry(
                key,
                tuple(lines),
                search=_asked(call, m),
                seq=call["seq"],
                fields={"texts": [h for h in (call["request_hash"], call["reply_hash"]) if h]},
            )
        )
    known = {str(call["call"]) for call in every}
    out += [live.entry(call, m, width) for name, call in under_way.items() if name not in known]
    if not every and not under_way:
        out.append(Entry("note", (line((nothing("No calls", m.history.status == "ended"), "dim")),), selectable=False))
    return out


def _title(call: LlmCallRow, m: Moment) -> Line:
    glyph, style = {"answered": ("✓", "ok"), "failed": ("✗", "bad")}.get(call["state"], ("…", "accent"))
    what, item = asked_for(str(call["step"]))
    role = ROLES.get(str(call["role"]), str(call["role"]))
    number = _iteration(m, int(call["seq"]))
    return line(
        (f"{glyph} ", style), (f"{role:<12} ", "bold"), what, (item, "bold"),
        (f"  iteration {number}" if number is not None else "", "dim"),
        (f"  {call['model']}" if not m.rules else "", "dim"),
    )  # fmt: skip


def _asked(call: LlmCallRow, m: Moment) -> str:
    """What a filter of the calls looks into."""
    return f"{plain(_title(call, m))} {call['model']} {call['error']}"


def _said(row: LogLine) -> str:
    """What a filter of the log looks into."""
    return f"{row['event']} {_fields(row)}"


def _iteration(m: Moment, seq: int) -> int | None:
    """The iteration that was open at a row."""
    return next((i.number for i in reversed(m.history.iterations) if i.seq <= seq), None)


def merged(rows: Sequence[LlmCallRow]) -> list[LlmCallRow]:
    """The last row of each call."""
    return list({row["call"]: row for row in rows}.values())


def readable(text: str) -> str:
    """JSON laid out with its strings' line feeds as line feeds; any other text as it is."""
    try:
        return _readable(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _readable(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        parts = [
            f"[{x.get('role', '')}]\n{_content(x.get('content', ''))}" for x in value["messages"] if isinstance(x, dict)
        ]
        return "\n\n".join(parts)
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        rest = {k: v for k, v in value.items() if k != "content" and v not in ("", None)}
        return "\n".join([readable(value["content"]), "", *_laid_out(rest)])
    return "\n".join(_laid_out(value))


def _laid_out(value: object, indent: str = "") -> list[str]:
    """A JSON value as indented lines; a text of several lines stays as it was written."""
    lines: list[str] = []
    if not isinstance(value, (dict, list)):
        return [indent + shown for shown in str(value).split("\n")]
    pairs = value.items() if isinstance(value, dict) else (("-", item) for item in value)
    for key, item in pairs:
        name = f"{key}:" if isinstance(value, dict) else "-"
        below = _laid_out(item, indent + "  ")
        if isinstance(item, list) or (isinstance(value, dict) and (isinstance(item, dict) or len(below) > 1)):
            lines += [indent + name, *below] if item else [f"{indent}{name} none"]
        else:
            lines += [f"{indent}{name} {below[0].lstrip()}", *below[1:]] if below else [indent + name]
    return lines


def _wrapped(text: str, width: int, style: str, most: int) -> list[Line]:
    """Wrapped, with the indentation that each line has."""
    out: list[Line] = []
    for shown in text.expandtabs(4).split("\n"):
        lead = " " * min(len(shown) - len(shown.lstrip(" ")), width // 2)
        out += wrap(shown, width, style, "    " + lead) or [line("")]
        if len(out) >= most:
            return [*out[: most - 1], line(("    …", "dim"))]
    return out


def _content(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(
            str(part.get("text", "(an image)")) if isinstance(part, dict) else str(part) for part in content
        )
    return str(content)


def _fields(row: LogLine) -> str:
    return "  ".join(f"{key}={value}" for key, value in row["fields"].items())


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else len(LEVELS) - 1


def _left_out(total: int) -> list[Entry]:
    if total <= MOST:
        return []
    text = f"{total - MOST:,} older rows are not shown; filter, or move the cursor back"
    return [Entry("older", (line((text, "dim")),), selectable=False)]
