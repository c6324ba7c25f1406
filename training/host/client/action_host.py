"""The trusted side of the action host: one host that survives the death of its process.

What the process knows about a lane is a function of the views it was sent since the last whole one. They are
kept here, so after a death a fresh process is brought to the same state by sending them again; only the call
that was running when the process died is not continued.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from rlgpt.training.host import wire
from rlgpt.training.host.api import (
    Admission,
    Answer,
    Ask,
    Death,
    Kind,
    Mode,
    Programs,
    source_hash,
)
from rlgpt.training.host.client.asks import LaneLog, flags_of, tick_body
from rlgpt.training.host.client.blame import Blame, admits, loading, running, token_of
from rlgpt.training.host.client.crash_recovery import Ended, Losses, Running
from rlgpt.training.host.client.errors import HostLost
from rlgpt.training.host.client.loading import admit_body, check, load_body, needed_sources
from rlgpt.training.host.client.process import BROKE_PROTOCOL, HostDied
from rlgpt.training.host.client.transport import Processes, Transport, replacement
from rlgpt.training.host.wire import AnswerCodec, Verdict, WireError

UNEXPLAINED_ALLOWED = 3
"""Deaths in one exchange with no source to blame before the host gives up."""
MEMORY_OF_A_CALL = 32 << 20
"""Bytes by which rebuilding one lane may grow a fresh process."""
_CHUNK = 256
"""Views replayed in one message when a lane is rebuilt."""


class ActionHost:
    """Implements `api.Host` over any transport."""

    def __init__(self, mode: Mode, lanes: int, native_action_size: int, processes: Processes) -> None:
        self.mode = mode
        self._blamed = Blame()
        self.quarantined: Mapping[str, str] = MappingProxyType(self._blamed.quarantined)
        self._processes = processes
        self._transport = self._replacement()
        self.enforced: Mapping[str, str] = dict(self._transport.enforced)
        self._command_size = native_action_size
        self._codec = AnswerCodec(Answer, native_action_size, 0, 0, 0)
        self._lanes = [LaneLog() for _ in range(lanes)]
        self._lost: dict[int, Ended] = {}
        self._programs = Programs()
        self._loading = self._programs
        """What was sent to the process last; `_programs` once it has said that it is loaded."""
        self._loaded = False
        self._admitted: dict[tuple[Kind, str], Admission] = {}
        self._refused: dict[tuple[Kind, str], str] = {}
        self._sources: dict[str, str] = {}
        self._posted: Callable[[], list[Answer]] | None = None
        """What brings the answers to the posted tick."""

    # Admission

    def admit(self, kind: Kind, source: str, views: Sequence[Sequence[bytes]] = ()) -> Admission:
        name = source_hash(source)
        earlier = self._admitted.get((kind, name))
        if earlier is not None and name not in self.quarantined:
            return earlier
        self._settle()
        verdict = self._verdict(kind, name, source, views)
        admission = Admission(
            verdict.admitted, name, kind, verdict.name, verdict.rule, verdict.line, verdict.message,
            verdict.arguments, verdict.has_available, verdict.uninterruptible, verdict.tree_hash,
        )  # fmt: skip
        if admission.admitted:
            self._admitted[kind, name] = admission
            self._refused.pop((kind, name), None)
        elif earlier is None:
            self._refused[kind, name] = f"rule {admission.rule}: {admission.message}"
        self._sources[name] = source
        return admission

    def _verdict(self, kind: Kind, name: str, source: str, views: Sequence[Sequence[bytes]]) -> Verdict:
        if name in self.quarantined:
            return _refusal("quarantined", f"this source is disabled: {self.quarantined[name]}; write another")
        try:
            source.encode()
        except UnicodeEncodeError as error:
            line = source.count("\n", 0, error.start) + 1
            return _refusal("syntax", "the source has characters that are no valid text", line)
        body = admit_body(kind, source, views)
        for _ in range(UNEXPLAINED_ALLOWED):
            try:
                return Verdict.decode(self._transport.exchange(wire.ADMIT, body))
            except WireError as error:
                died = HostDied(f"{BROKE_PROTOCOL}: {error}", _ADMITTING, own=True)
            except HostDied as error:
                died = error
            if not admits(died.token):
                self._recover(died, Losses())
                continue
            self._blamed.count(died, name, "the source in its dry run", 0)
            self._rebuild_or_recover(Losses())
            line = 0 if died.forbidden else self._line_of_death(died, body)
            ran = f"line {line}" if line else "the source"
            advice = "; do less work per step" if died.too_slow else ""
            return _refusal("killed", f"the host {died.cause} while it ran {ran} on recorded views{advice}", line)
        times = f"{UNEXPLAINED_ALLOWED} times in a row"
        return _refusal("killed", f"while the source was to be checked the host {died.cause}, {times}; send it again")

    def _line_of_death(self, died: HostDied, body: bytes) -> int:
        """The line of a source that ends its host: it runs once more and tells its lines. 0 if that ends otherwise."""
        try:
            self._transport.exchange(wire.TRACE, body)
        except HostDied as again:
            self._rebuild_or_recover(Losses())
            if admits(again.token) and (again.cause == died.cause or (again.too_slow and died.too_slow)):
                return int(wire.LINE.unpack_from(again.token, wire.LINE_AT)[0])
        return 0

    # Loading

    def load(self, programs: Programs) -> None:
        check(programs, self._admitted, self._refused, self._sources)
        self._settle()
        self._loading = programs
        self._loaded = True
        sizes = len(programs.actions), len(programs.plan), len(programs.predicates)
        self._codec = AnswerCodec(Answer, self._command_size, *sizes)
        for lane in self._lanes:
            lane.is_open = False
        died: HostDied | None = None
        try:
            self._load_again()
        except HostDied as error:
            died = error
            self._blame(died, Losses())  # perhaps a call that was dropped, which is one of the programs of before
        self._programs = programs
        self._lost.clear()
        if died is not None:
            self._rebuild_or_recover(Losses())

    # The tick

    def tick(self, asks: Sequence[Ask]) -> list[Answer]:
        self.post(asks)
        return self.collect()

    def post(self, asks: Sequence[Ask]) -> None:
        self._settle()
        if self._lost:
            self._posted = partial(self._careful_tick, asks, None)
            return
        try:
            self._transport.begin(wire.TICK, tick_body(asks, None))
        except HostDied as died:
            self._posted = partial(self._careful_tick, asks, died)
        else:
            self._posted = partial(self._finish, asks)

    def collect(self) -> list[Answer]:
        if self._posted is None:
            raise ValueError("nothing was posted")
        answers, self._posted = self._posted, None
        return answers()

    def _settle(self) -> None:
        """Let the process finish what was posted, before it is asked for something else."""
        if self._posted is not None:
            answers = self.collect()
            self._posted = lambda: answers

    def _finish(self, asks: Sequence[Ask]) -> list[Answer]:
        try:
            answers = self._decoded(asks, self._transport.finish(wire.TICK))
        except HostDied as died:
            return self._careful_tick(asks, died)
        self._remember(asks, answers)
        return answers

    def _exchange_tick(self, asks: Sequence[Ask], flags: Sequence[int]) -> list[Answer]:
        return self._decoded(asks, self._transport.exchange(wire.TICK, tick_body(asks, flags)))

    def _decoded(self, asks: Sequence[Ask], reply: bytes) -> list[Answer]:
        try:
            return self._codec.decode(reply, [ask.lane for ask in asks])
        except WireError as error:
            raise HostDied(f"{BROKE_PROTOCOL}: {error}", wire.IDLE, own=True) from None

    def _remember(self, asks: Sequence[Ask], answers: Sequence[Answer]) -> None:
        lanes = self._lanes
        for ask, answer in zip(asks, answers, strict=True):
            lanes[ask.lane].add(ask, answer)

    # After a death

    def _careful_tick(self, asks: Sequence[Ask], died: HostDied | None) -> list[Answer]:
        """A tick around calls that have died: the rest of it is asked of a rebuilt process."""
        if died is not None and len(asks) > 1 and self._running(died.token) is None and died.own:
            # It did something that its token does not explain: find out with which ask.
            self._restart(died)
            return [answer for ask in asks for answer in self._careful_tick([ask], None)]
        opening = {ask.lane: ask.open for ask in asks if ask.open is not None}
        losses = Losses({ask.lane: 0 for ask in asks}, opening)
        for ask in asks:
            lost = self._lost.pop(ask.lane, None)
            if lost is not None and ask.resume and ask.open is None:
                losses.ended[ask.lane], losses.skip[ask.lane] = lost, wire.CALLS
        while True:
            if died is not None:
                self._recover(died, losses)
            try:
                answers = self._exchange_tick(asks, [flags_of(ask) & ~losses.skip[ask.lane] for ask in asks])
                break
            except HostDied as error:
                died = error
        self._remember(asks, answers)
        return [self._with_losses(answer, losses) for answer in answers]

    def _with_losses(self, answer: Answer, losses: Losses) -> Answer:
        ended, note = losses.ended.get(answer.lane), losses.notes.get(answer.lane)
        if ended is not None:
            self._lanes[answer.lane].is_open = False
            answer = answer._replace(end=ended.end, message=ended.message, action=ended.action)
        if note:
            answer = answer._replace(message="; ".join(filter(None, (answer.message, note))))
        return answer

    def _recover(self, died: HostDied, losses: Losses) -> None:
        """Blame the dead process's last call and bring a fresh process to the state of the others."""
        while True:
            if died.out_of_memory:
                died = self._largest(died, losses)
            if self._blame(died, losses):
                losses.unexplained = 0
            else:
                losses.unexplained += 1
                if losses.unexplained >= UNEXPLAINED_ALLOWED:
                    self._give_up(died, losses)
            try:
                self._rebuild(losses)
                return
            except HostDied as error:
                died = error

    def _give_up(self, died: HostDied, losses: Losses) -> None:
        """No source explains why the process dies again and again: end every call, so that there is nothing to bring
        back but views. Raises HostLost where that was no help."""
        times = f"{UNEXPLAINED_ALLOWED} times in a row"
        if losses.given_up:
            raise HostLost(f"the action host cannot be kept alive: without any call it {died.cause}, {times}")
        losses.given_up, losses.unexplained = True, 0
        message = f"the host {died.cause}, {times}, and no source explains it: every call in it was ended"
        for index, lane in enumerate(self._lanes):
            if index in losses.opening or lane.is_open:
                self._lose(index, Ended("killed", message, losses.opening.get(index, lane.action)), losses)
        for index in losses.skip:
            losses.skip[index] = wire.CALLS | wire.PREDICATES | wire.AVAILABLE | wire.REWARD
            losses.notes[index] = "" if index in losses.ended else message

    def _restart(self, died: HostDied) -> None:
        """A fresh process in the state of the dead one, whose death is nobody's yet."""
        self._blamed.count(died, "", "no source", 0)
        self._rebuild_or_recover(Losses())

    def _rebuild_or_recover(self, losses: Losses) -> None:
        try:
            self._rebuild(losses)
        except HostDied as died:
            self._recover(died, losses)

    def _rebuild(self, losses: Losses) -> None:
        self._transport.close()
        self._transport = self._replacement()
        self._load_again()
        for index in range(len(self._lanes)):
            self._replay(index, losses)

    def _replacement(self) -> Transport:
        transport, failures = replacement(self._processes)
        self._blamed.deaths += failures
        return transport

    def _load_again(self) -> None:
        if self._loaded:
            self._transport.exchange(wire.LOAD, load_body(self._loading, self._sources, self._disabled()))

    def _disabled(self) -> dict[str, str]:
        """Hash -> why, of what is to be loaded and not to be run."""
        needed = needed_sources(self._loading)
        refused = {name: self._refused[kind, name] for kind, name in needed if (kind, name) in self._refused}
        return refused | {name: why for _, name in needed if (why := self.quarantined.get(name))}

    def _replay(self, index: int, losses: Losses) -> int:
        """Send a lane's views again; returns which action its call runs, -1 if none.

        A call that ends on the way (its source has been disabled) is lost.
        """
        replayed = self._lanes[index].replay(with_call=index not in losses.opening)
        action = -1
        for at in range(0, len(replayed), _CHUNK):
            asks, flags = zip(*replayed[at : at + _CHUNK], strict=True)
            for answer in self._exchange_tick(asks, flags):
                action = answer.action
                if answer.end is not None:
                    self._lose(index, Ended(answer.end, answer.message, answer.action), losses)
                    return -1
        return action

    def _largest(self, died: HostDied, losses: Losses) -> HostDied:
        """Which call holds the memory that the process ran out of: each is rebuilt alone and measured.

        If none is large the call that was running asked for too much at once.
        """
        try:
            self._transport.close()
            self._transport = self._replacement()
            self._load_again()
            before = self._transport.resident()
            for index in range(len(self._lanes)):
                action = self._replay(index, losses)
                after = self._transport.resident()
                if after - before > MEMORY_OF_A_CALL and action >= 0:
                    return HostDied(died.cause, token_of(index, action))
                before = after
        except HostDied as again:
            return HostDied(again.cause, again.token, again.forbidden)
        return HostDied(died.cause, died.token)

    def _blame(self, died: HostDied, losses: Losses) -> bool:
        """Whether a source was running; its call, or what was asked of it, is not asked again."""
        if loaded := loading(died.token, self._loading):
            self._blamed.count(died, loaded, f"`{self._label(loaded)}`", 0, "loading")
            return True
        running = self._running(died.token)
        if running is None and died.own and len(losses.skip) == 1:
            (lane,) = losses.skip
            running = self._running(token_of(lane, losses.opening.get(lane, self._lanes[lane].action)))
        if running is None or (running.asked_of and running.lane not in losses.skip):
            self._blamed.count(died, "", "no source", 0)
            return False
        lane, name, asked_of = running.lane, running.source_hash, running.asked_of
        message = self._blamed.count(died, name, f"`{self._label(name)}`", lane)
        if asked_of:
            losses.skip[lane] |= asked_of
            losses.notes[lane] = message
            return True
        self._lose(lane, Ended("killed", message, running.action), losses)
        return True

    def _lose(self, lane: int, lost: Ended, losses: Losses) -> None:
        """A call is over; its lane is told now or at its next step."""
        self._lanes[lane].is_open = False
        if lane in losses.skip:
            losses.skip[lane] |= wire.CALLS
            losses.ended[lane] = lost
        else:
            self._lost[lane] = lost

    def _running(self, token: bytes) -> Running | None:
        return running(token, self._programs, len(self._lanes))

    def _label(self, name: str) -> str:
        return next((a.name for a in self._admitted.values() if a.source_hash == name), "a refused source")

    @property
    def deaths(self) -> int:
        return self._blamed.deaths

    def cpu_seconds(self) -> float:
        return self._transport.cpu_seconds()

    def take_deaths(self) -> list[Death]:
        return self._blamed.take()

    def close(self) -> None:
        self._transport.close()
        self._processes.close()


_ADMITTING = wire.TOKEN.pack(0, wire.ADMITS, 0)


def _refusal(rule: str, message: str, line: int = 0) -> Verdict:
    return Verdict(False, "", rule, line, message, {}, False, False, "")
