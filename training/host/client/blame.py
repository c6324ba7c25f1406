"""Decides which source a death of the host process is blamed on, and which sources are not run any more."""

from __future__ import annotations

from collections import Counter

from rlgpt.training.host import wire
from rlgpt.training.host.api import Death, Programs, source_hash
from rlgpt.training.host.client.crash_recovery import Running
from rlgpt.training.host.client.loading import needed_sources
from rlgpt.training.host.client.process import HostDied

DEATHS_ALLOWED = 2
"""Host deaths from one source after which it is not run any more."""


class Blame:
    """The deaths so far, by source."""

    def __init__(self) -> None:
        self.deaths = 0
        self.quarantined: dict[str, str] = {}
        """Source hash -> why it is not run any more."""
        self._deaths_by_source: Counter[str] = Counter()
        self._unreported_deaths: list[Death] = []

    def count(self, died: HostDied, name: str, label: str, lane: int, doing: str = "running") -> str:
        """Count a death and return the sentence about it. `name` is the hash of the blamed source, empty for none."""
        self.deaths += 1
        message = f"the host {died.cause} while {doing} {label}"
        if name:
            self._deaths_by_source[name] += 1
            message += f", death {self._deaths_by_source[name]} of this source"
            if died.forbidden or self._deaths_by_source[name] >= DEATHS_ALLOWED:
                self.quarantined[name] = message
        self._unreported_deaths.append(Death(message, name, lane, name in self.quarantined))
        return message

    def take(self) -> list[Death]:
        """The deaths since the last call."""
        suspects, self._unreported_deaths = self._unreported_deaths, []
        return suspects


# ---- what the token of a dead process names ----------------------------------------------------------
def find_running_source(token: bytes, programs: Programs, lanes: int) -> Running | None:
    """What the process was evaluating, None if the token names no source of these programs."""
    lane, kind, index = wire.TOKEN.unpack(token)
    name = _source_of(programs, kind, index)
    if name is None or lane >= lanes:
        return None
    plan = kind in (wire.RUNS_PLAN_ACTION, wire.RUNS_PLAN_TEST)
    return Running(lane, name, _ASKED_OF.get(kind, 0), index | wire.PLAN_BIT if plan else index)


def find_loading_source(token: bytes, programs: Programs) -> str:
    """Hash of the source that was being loaded, empty if none was."""
    _, kind, index = wire.TOKEN.unpack(token)
    needed = needed_sources(programs)
    return needed[index][1] if kind == wire.LOADS and index < len(needed) else ""


def was_admitting(token: bytes) -> bool:
    """Whether a source was being admitted."""
    return bool(wire.TOKEN.unpack(token)[1] == wire.ADMITS)


def token_of(lane: int, action: int) -> bytes:
    """The token that a call in a lane would leave. `action` as in an answer."""
    kind = wire.RUNS_PLAN_ACTION if action & wire.PLAN_BIT else wire.RUNS_ACTION
    return bytes(wire.TOKEN.pack(lane, kind, action & ~wire.PLAN_BIT))


def _source_of(programs: Programs, kind: int, index: int) -> str | None:
    try:
        match kind:
            case wire.RUNS_ACTION | wire.RUNS_AVAILABLE:
                return programs.actions[index].source_hash
            case wire.RUNS_PLAN_ACTION:
                return programs.plan[index].action.source_hash
            case wire.RUNS_PLAN_TEST:
                item = programs.plan[index & ~wire.TRIGGER_BIT]
                return source_hash(item.trigger if index & wire.TRIGGER_BIT else item.done_when)
            case wire.RUNS_PREDICATE:
                return source_hash(programs.predicates[index])
            case wire.RUNS_REWARD:
                return programs.rewards[index]
    except IndexError:
        pass
    return None


_ASKED_OF = {
    wire.RUNS_PREDICATE: wire.PREDICATES,
    wire.RUNS_AVAILABLE: wire.AVAILABLE,
    wire.RUNS_REWARD: wire.REWARD,
}
