"""Checks sources against what the host admitted, and encodes the messages that admit and load them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlgpt.training.host import wire
from rlgpt.training.host.api import Action, Admission, Kind, Programs, source_hash
from rlgpt.training.host.client.errors import NotAdmitted
from rlgpt.training.host.wire import Writer

Admitted = Mapping[tuple[Kind, str], Admission]
"""(kind, source hash) -> admission."""
Refusals = Mapping[tuple[Kind, str], str]
"""(kind, source hash) -> why it was refused."""
MOST_TESTS = 64
SOURCE_SENT = 65_536
"""Characters of a source that are sent; longer ones are refused for their length anyway."""
STAND_INS: dict[Kind, str] = {
    "action": "def disabled(view):\n    yield 0",
    "done_when": "False",
    "reward": "def reward(before, view):\n    return 0",
}
"""What is sent instead of a source that is not run: it may be one that ends a host which only reads it."""


def admit_body(kind: Kind, source: str, views: Sequence[Sequence[bytes]]) -> bytes:
    """The message that asks whether a source may run: kind, source, sequences of views."""
    out = Writer().number(wire.KINDS.index(kind)).text(source[:SOURCE_SENT]).number(len(views))
    for sequence in views:
        out.number(len(sequence))
        for view in sequence:
            out.blob(view)
    return out.done()


def needed_sources(programs: Programs) -> list[tuple[Kind, str]]:
    """(kind, source hash) of everything a set of programs needs, once each."""
    actions = (*programs.actions, *(item.action for item in programs.plan))
    triggers = (item.trigger for item in programs.plan if item.trigger)
    tests = (*programs.predicates, *(item.done_when for item in programs.plan), *triggers)
    sources: list[tuple[Kind, str]] = [("action", action.source_hash) for action in actions]
    sources += [("done_when", source_hash(test)) for test in tests]
    sources += [("reward", reward) for reward in programs.rewards]
    return list(dict.fromkeys(sources))


def check(programs: Programs, admitted: Admitted, refused: Refusals, sources: Mapping[str, str]) -> None:
    """Raises NotAdmitted for anything the host was not asked about, or has not admitted as what it is to be.

    What it refused may be loaded, and is disabled: rows of an earlier day name sources that are refused today.
    """
    for kind, name in needed_sources(programs):
        if (kind, name) not in admitted and (kind, name) not in refused:
            raise NotAdmitted(f"source {name} was not admitted as {kind} by this host")
        if programs.sources.get(name, sources[name]) != sources[name]:
            raise NotAdmitted(f"source {name} is not the text that was admitted")
    for action in (*programs.actions, *(item.action for item in programs.plan)):
        admission = admitted.get(("action", action.source_hash))
        arguments = dict(action.arguments)
        if admission is not None and (
            set(arguments) != set(admission.arguments)
            or any(value not in admission.arguments[name] for name, value in arguments.items())
        ):
            raise NotAdmitted(f"`{admission.name}` does not take the arguments {arguments}")
    if len(programs.predicates) > MOST_TESTS or len(programs.rewards) > MOST_TESTS:
        raise NotAdmitted(f"at most {MOST_TESTS} predicates and {MOST_TESTS} rewards can be loaded")


def load_body(programs: Programs, sources: Mapping[str, str], disabled: Mapping[str, str]) -> bytes:
    """The message: sources, actions, plan, predicates, rewards, whether lines are told, hashes of disabled sources with
    the reasons."""
    needed = needed_sources(programs)
    out = Writer().number(len(needed))
    for kind, name in needed:
        out.number(wire.KINDS.index(kind)).text(name).text(STAND_INS[kind] if name in disabled else sources[name])
    out.number(len(programs.actions))
    for action in programs.actions:
        _put(out, action)
    out.number(len(programs.plan))
    for item in programs.plan:
        out.text(source_hash(item.done_when)).text(source_hash(item.trigger) if item.trigger else "")
        _put(out, item.action)
    for names in ([source_hash(text) for text in programs.predicates], programs.rewards):
        out.number(len(names))
        for name in names:
            out.text(name)
    out.number(programs.lines).number(len(disabled))
    for name, why in disabled.items():
        out.text(name).text(why)
    return out.done()


def _put(out: Writer, action: Action) -> None:
    out.text(action.source_hash).number(len(action.arguments))
    for argument, value in action.arguments:
        out.text(argument).literal(value)
