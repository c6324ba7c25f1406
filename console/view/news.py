"""Notices for an operator who looks elsewhere: a session needs a person, died, ended, or answered a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from rlgpt.console.keymap import NO_KEYS, short
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.words import needed_from_person, state_of

Severity = Literal["information", "warning", "error"]


class Notice(NamedTuple):
    sentence: str
    severity: Severity
    bell: bool = False


class Known(NamedTuple):
    """The state of a session that notices are made from, by comparing it with a later one."""

    state: str
    needs: str
    """What a person must give, "" for nothing; another plan or sub-action is another need."""
    fates: Mapping[str, str]
    """Id -> state of the commands asked about."""
    deaths: int = 0
    """Trainers that died."""


FINAL = ("applied", "refused", "expired")


def known(m: Moment, sent: Mapping[str, str]) -> Known:
    """`sent`: id -> words of the commands that this console sent."""
    h = m.history
    needs = h.waiting_for if h.status == "waiting" and needed_from_person(h.waiting_for) else ""
    fates = {ident: h.commands[ident].state for ident in sent if ident in h.commands}
    return Known(state_of(m)[0], needs, fates, len(m.deaths))


def since(
    before: Known, now: Known, m: Moment, sent: Mapping[str, str], keys: Mapping[str, str] = NO_KEYS
) -> list[Notice]:
    """`keys`: those of the user's keymap."""
    h = m.history
    name = str(h.session.get("name", ""))
    notices: list[Notice] = []
    if now.state != before.state and h.status == "ended":
        notices.append(Notice(f"{name}: {h.result}: {h.reason}", "information", True))
    elif now.state != before.state and now.state in ("dead", "hung"):
        again = f"{short('session.resume', keys)} starts a worker again"
        more = again if now.state == "dead" else "it holds its lock and makes no progress"
        notices.append(Notice(f"{name} is {now.state}; {more}", "error", True))
    elif now.needs and now.needs != before.needs:
        notices.append(Notice(f"{name} waits for {now.needs}", "warning", True))
    if now.deaths > before.deaths and m.deaths[-1].restart:
        notices.append(Notice(f"{name}: the worker died ({m.deaths[-1].how}) and is started again", "warning", True))
    for ident, state in now.fates.items():
        if state in FINAL and before.fates.get(ident) != state:
            reason = h.commands[ident].reason
            why = f": {reason}" if reason else ""
            notices.append(Notice(f"{sent[ident]}: {state}{why}", "information" if state == "applied" else "error"))
    return notices
