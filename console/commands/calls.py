"""`calls`: every exchange with a language model, its prompt, reply, tries, tokens, cost and latency."""

from __future__ import annotations

import json as js
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from rlgpt.console.commands import output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.insight import At, check_row
from rlgpt.console.commands.sessions import looked_at
from rlgpt.console.commands.words import Json, Session
from rlgpt.console.view import spending
from rlgpt.console.view.logs import readable
from rlgpt.console.view.numbers import count, money, time_of_day
from rlgpt.console.view.words import ROLES, asked_for
from rlgpt.store.errors import StoreError
from rlgpt.store.event_payloads import kind_of, read_event
from rlgpt.store.events import Probed
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import EventRow, LlmCallRow

TITLES = ("no", "at", "role", "what it does", "try", "ended", "in", "cached", "out", "thought", "cost", "seconds")
WORDS = {"sent": "no answer yet", "answered": "answered", "failed": "failed"}
Tree = dict[str, Any]


def register(app: typer.Typer) -> None:
    app.command()(calls)


def calls(
    session: Session,
    number: Annotated[
        int | None, typer.Argument(metavar="[NO]", min=1, help="One exchange with its prompt and its reply.")
    ] = None,
    at: At = None,
    json: Json = False,
) -> None:
    """List the exchanges with language models; NO shows one of them whole."""
    with looked_at(session) as folder, Reader(folder) as reader:
        check_row(folder.id, reader.last_seq(), at)
        exchanges = _exchanges(reader.rows(LlmCallRow, upto_seq=at))
        roles = spending.by_role([exchange.row for exchange in exchanges])
        if number is not None:
            if number > len(exchanges):
                then = "" if at is None else f" at row {at}"
                raise Failure(f"{folder.id} has {len(exchanges)} exchanges with language models{then}.", Exit.NOT_FOUND)
            exchanges = [exchanges[number - 1]]
        probes = [event for row in reader.rows(EventRow, {"kind": kind_of(Probed)}, upto_seq=at)
                  if isinstance(event := read_event(row["kind"], row["payload"]), Probed)]  # fmt: skip
        shown = [_exchange_tree(reader, row, probes, texts=json or number is not None) for row in exchanges]
    if json:
        output.document({"calls": shown, "roles": [spending.tree(role) for role in roles]})
    elif number is not None:
        _say_whole(shown[0])
    elif shown:
        output.table(TITLES, map(_row, shown))
        for call in shown:
            for sentence in (*([call["error"]] if call["error"] else []), *map(_headline, call["probes"])):
                output.say(f"{call['number']}: {sentence}")
        output.say()
        output.table(spending.TITLES, map(spending.cells, roles))
    else:
        output.say("no language model was asked yet" if at is None else f"no language model was asked up to row {at}")


@dataclass(frozen=True)
class _Exchange:
    number: int
    sent_at: float
    row: LlmCallRow
    """That ended it, or was sent."""


def _exchanges(rows: list[LlmCallRow]) -> list[_Exchange]:
    """Numbered in the order of sending. A call that a restart cut off may have been sent again under the same id."""
    open_at: dict[str, int] = {}
    exchanges: list[_Exchange] = []
    for row in rows:
        if row["state"] == "sent":
            open_at[row["call"]] = len(exchanges)
            exchanges.append(_Exchange(len(exchanges) + 1, row["at"], row))
        elif row["call"] in open_at:
            at = open_at.pop(row["call"])
            exchanges[at] = replace(exchanges[at], row=row)
    return exchanges


def _headline(probe: Tree) -> str:
    return f"tries {probe['tool']}: {probe['told'].partition(chr(10))[0]}"


def _exchange_tree(reader: Reader, exchange: _Exchange, probes: Sequence[Probed], texts: bool) -> Tree:
    row = exchange.row
    question = (row["step"], row["request_hash"])
    reply = _text(reader, row["reply_hash"])
    parts = _object(reply)
    usage = parts.get("usage") or {}
    answer = {
        "number": exchange.number,
        "at": exchange.sent_at,
        "seq": row["seq"],
        "role": row["role"],
        "model": row["model"],
        "step": row["step"],
        "try": row["try_number"],
        "state": row["state"],
        "error": row["error"],
        "tokens_in": row["tokens_in"],
        "tokens_out": row["tokens_out"],
        "tokens_cached": int(usage.get("cached") or 0),
        "tokens_thought": int(usage.get("reasoning") or 0),
        "usd": row["cost"],
        "seconds": row["seconds"],
        "probes": [
            {"tool": probe.tool, "told": probe.told, "env_steps": probe.env_steps}
            for probe in probes
            if row["state"] == "answered" and (probe.step, probe.request_hash) == question
        ],
    }
    if texts:
        answer["prompt"] = _object(_text(reader, row["request_hash"])) or None
        said = {k: v for k, v in parts.items() if k != "usage"}
        answer["reply"] = {"thought": "", **said} if said else None
    return answer


def _text(reader: Reader, name: str | None) -> str:
    try:
        return reader.text(name)
    except StoreError:  # left out of a bundle without prompts
        return ""


def _object(text: str) -> Tree:
    try:
        value = js.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _row(call: Tree) -> tuple[object, ...]:
    what, item = asked_for(str(call["step"]))
    answered = call["state"] != "sent"
    ended = (
        f"{WORDS[call['state']]}, of no use" if call["state"] == "answered" and call["error"] else WORDS[call["state"]]
    )
    cost = "unknown" if call["usd"] is None else money(call["usd"])
    return (
        call["number"],
        time_of_day(call["at"]),
        ROLES.get(str(call["role"]), str(call["role"])),
        f"{what}{item}",
        call["try"],
        ended,
        count(call["tokens_in"]) if answered else "",
        count(call["tokens_cached"]) if answered else "",
        count(call["tokens_out"]) if answered else "",
        count(call["tokens_thought"]) if answered else "",
        cost if answered else "",
        f"{call['seconds']:.1f}" if answered else "",
    )


def _say_whole(call: Tree) -> None:
    row = dict(zip(TITLES, _row(call), strict=True))
    output.say(", ".join(f"{title} {value}" for title, value in row.items() if value != ""))
    output.say(f"model {call['model']}")
    if call["error"]:
        output.say(f"error: {call['error']}")
    for name in ("prompt", "reply"):
        output.say()
        output.say(f"---- {name} ----")
        text = readable(js.dumps(call[name])) if call[name] else "not kept"
        for line in text.split("\n"):
            output.say(line)
    for probe in call["probes"]:
        output.say()
        output.say(f"---- {probe['tool']}, {probe['env_steps']} env steps ----")
        for line in probe["told"].split("\n"):
            output.say(line)
