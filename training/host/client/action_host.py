"""The trusted side of the action host: one host that survives the death of its process.

The state of a lane in the process is a function of the views that were sent to it since the last whole one. This side
keeps them, so that after a death a fresh process gets the same state when they are sent again. Only the call that was
running when the process died is not continued.
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
from rlgpt.training.host.client.blame import Blame, find_loading_source, find_running_source, token_of, was_admitting
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


class ActionHost:
    """Implements `api.Host` over any transport."""

    def __init__(self, mode: Mode, lanes: int, native_action_size: int, processes: Processes) -> None:
        self.mode = mode
        self._blame_record = Blame()
        self.quarantined: Mapping[str, str] = MappingProxyType(self._blame_record.quarantined)
        self._processes = processes
        self._transport = self._start_process()
        self.enforced: Mapping[str, str] = dict(self._transport.enforced)
        self._command_size = native_action_size
        self._codec = AnswerCodec(Answer, native_action_size, 0, 0, 0)
        self._lanes = [LaneLog() for _ in range(lanes)]
        self._lost_calls: dict[int, Ended] = {}
        self._programs = Programs()
        self._programs_sent = self._programs
        """The programs that were last sent to the process; they become `_programs` once it has replied."""
        self._has_programs = False
        self._admissions: dict[tuple[Kind, str], Admission] = {}
        self._dry_run: set[tuple[Kind, str]] = set()
        """Those that were admitted on views, not only by their text."""
        self._refusals: dict[tuple[Kind, str], str] = {}
        self._sources: dict[str, str] = {}
        self._collect_answers: Callable[[], list[Answer]] | None = None
        """Returns the answers to the posted tick; None while none is posted."""

    # Admission

    def admit(self, kind: Kind, source: str, views: Sequence[Sequence[bytes]] = ()) -> Admission:
        name = source_hash(source)
        earlier = self._admissions.get((kind, name))
        if earlier is not None and name not in self.quarantined:
            if not views or (kind, name) in self._dry_run:
                return earlier
            del self._admissions[kind, name]  # by its text alone: the views may speak against it
            earlier = None
        self._finish_posted()
        verdict = self._admit_in_process(kind, name, source, views)
        admission = Admission(
            verdict.admitted, name, kind, verdict.name, verdict.rule, verdict.line, verdict.message,
            verdict.arguments, verdict.has_available, verdict.uninterruptible, verdict.tree_hash,
        )  # fmt: skip
        if admission.admitted:
            self._admissions[kind, name] = admission
            self._refusals.pop((kind, name), None)
            if views:
                self._dry_run.add((kind, name))
        elif earlier is None:
            self._refusals[kind, name] = f"rule {admission.rule}: {admission.message}"
        self._sources[name] = source
        return admission

    def _admit_in_process(self, kind: Kind, name: str, source: str, views: Sequence[Sequence[bytes]]) -> Verdict:
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
            if not was_admitting(died.token):
                self._recover(died, Losses())
                continue
            self._blame_record.count(died, name, "the source in its dry run", 0)
            self._rebuild_or_recover(Losses())
            line = 0 if died.forbidden else self._line_of_death(died, body)
            place = f"line {line}" if line else "the source"
            advice = "; do less work per step" if died.too_slow else ""
            return _refusal("killed", f"the host {died.cause} while it ran {place} on recorded views{advice}", line)
        times = f"{UNEXPLAINED_ALLOWED} times in a row"
        return _refusal("killed", f"while the source was to be checked the host {died.cause}, {times}; send it again")

    def _line_of_death(self, died: HostDied, body: bytes) -> int:
        """The line at which a source ends its host: it is run once more with its lines reported. 0 if that run ends
        otherwise."""
        try:
            self._transport.exchange(wire.TRACE, body)
        except HostDied as again:
            self._rebuild_or_recover(Losses())
            if was_admitting(again.token) and (again.cause == died.cause or (again.too_slow and died.too_slow)):
                return int(wire.LINE.unpack_from(again.token, wire.LINE_AT)[0])
        return 0

    # Loading

    def load(self, programs: Programs) -> None:
        check(programs, self._admissions, self._refusals, self._sources)
        self._finish_posted()
        self._programs_sent = programs
        self._has_programs = True
        sizes = len(programs.actions), len(programs.plan), len(programs.predicates)
        self._codec = AnswerCodec(Answer, self._command_size, *sizes)
        for lane in self._lanes:
            lane.is_open = False
        died: HostDied | None = None
        try:
            self._send_programs()
        except HostDied as error:
            died = error
            self._blame(died, Losses())  # perhaps a call that was dropped: its source is one of the previous programs
        self._programs = programs
        self._lost_calls.clear()
        if died is not None:
            self._rebuild_or_recover(Losses())

    # The tick

    def tick(self, asks: Sequence[Ask]) -> list[Answer]:
        self.post(asks)
        return self.collect()

    def post(self, asks: Sequence[Ask]) -> None:
        self._finish_posted()
        if self._lost_calls:
            self._collect_answers = partial(self._tick_with_recovery, asks, None)
            return
        try:
            self._transport.begin(wire.TICK, tick_body(asks, None))
        except HostDied as died:
            self._collect_answers = partial(self._tick_with_recovery, asks, died)
        else:
            self._collect_answers = partial(self._finish_tick, asks)

    def collect(self) -> list[Answer]:
        if self._collect_answers is None:
            raise ValueError("nothing was posted")
        answers, self._collect_answers = self._collect_answers, None
        return answers()

    def _finish_posted(self) -> None:
        """Collect the answers to a posted tick, and keep them, before another message is sent."""
        if self._collect_answers is not None:
            answers = self.collect()
            self._collect_answers = lambda: answers

    def _finish_tick(self, asks: Sequence[Ask]) -> list[Answer]:
        try:
            answers = self._decode_answers(asks, self._transport.finish(wire.TICK))
        except HostDied as died:
            return self._tick_with_recovery(asks, died)
        self._log_answers(asks, answers)
        return answers

    def _exchange_tick(self, asks: Sequence[Ask], flags: Sequence[int]) -> list[Answer]:
        return self._decode_answers(asks, self._transport.exchange(wire.TICK, tick_body(asks, flags)))

    def _decode_answers(self, asks: Sequence[Ask], reply: bytes) -> list[Answer]:
        try:
            return self._codec.decode(reply, [ask.lane for ask in asks])
        except WireError as error:
            raise HostDied(f"{BROKE_PROTOCOL}: {error}", wire.IDLE, own=True) from None

    def _log_answers(self, asks: Sequence[Ask], answers: Sequence[Answer]) -> None:
        lanes = self._lanes
        for ask, answer in zip(asks, answers, strict=True):
            lanes[ask.lane].add(ask, answer)

    # After a death

    def _tick_with_recovery(self, asks: Sequence[Ask], died: HostDied | None) -> list[Answer]:
        """A tick in which calls have died: the remaining asks are sent to a rebuilt process."""
        if died is not None and len(asks) > 1 and self._find_running(died.token) is None and died.own:
            # The token does not say which source did it: find out by sending one ask at a time.
            self._restart_unblamed(died)
            return [answer for ask in asks for answer in self._tick_with_recovery([ask], None)]
        opening = {ask.lane: ask.open for ask in asks if ask.open is not None}
        losses = Losses({ask.lane: 0 for ask in asks}, opening)
        for ask in asks:
            lost = self._lost_calls.pop(ask.lane, None)
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
        self._log_answers(asks, answers)
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
                died = self._find_largest_call(died, losses)
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
        """End every call, so that only views must be restored: no source explains why the process dies again and
        again. Raises HostLost if that was done before."""
        times = f"{UNEXPLAINED_ALLOWED} times in a row"
        if losses.given_up:
            alone = "without any call, so that only the world's decoder runs,"
            raise HostLost(f"the action host cannot be kept alive: {alone} it {died.cause}, {times}")
        losses.given_up, losses.unexplained = True, 0
        message = f"the host {died.cause}, {times}, and no source explains it: every call in it was ended"
        for index, lane in enumerate(self._lanes):
            if index in losses.opening or lane.is_open:
                self._end_lost_call(index, Ended("killed", message, losses.opening.get(index, lane.action)), losses)
        for index in losses.skip:
            losses.skip[index] = wire.CALLS | wire.PREDICATES | wire.AVAILABLE | wire.REWARD
            losses.notes[index] = "" if index in losses.ended else message

    def _restart_unblamed(self, died: HostDied) -> None:
        """Start a fresh process in the state of the dead one; its death is not blamed on a source yet."""
        self._blame_record.count(died, "", "no source", 0)
        self._rebuild_or_recover(Losses())

    def _rebuild_or_recover(self, losses: Losses) -> None:
        try:
            self._rebuild(losses)
        except HostDied as died:
            self._recover(died, losses)

    def _rebuild(self, losses: Losses) -> None:
        self._transport.close()
        self._transport = self._start_process()
        self._send_programs()
        for index in range(len(self._lanes)):
            self._replay(index, losses)

    def _start_process(self) -> Transport:
        transport, failures = replacement(self._processes)
        self._blame_record.deaths += failures
        return transport

    def _send_programs(self) -> None:
        if self._has_programs:
            self._transport.exchange(wire.LOAD, load_body(self._programs_sent, self._sources, self._disabled()))

    def _disabled(self) -> dict[str, str]:
        """Source hash -> why it is not run, for the sources to load that were refused or quarantined."""
        needed = needed_sources(self._programs_sent)
        refused = {name: self._refusals[kind, name] for kind, name in needed if (kind, name) in self._refusals}
        return refused | {name: why for _, name in needed if (why := self.quarantined.get(name))}

    def _replay(self, index: int, losses: Losses) -> int:
        """Send a lane's views again; returns which action its call runs, -1 if none.

        A call that ends on the way (its source has been disabled) is lost. Each view is a message of its own: in one
        message all evaluations of a lane look like one, and together they could exceed the CPU time of one.
        """
        action = -1
        for ask, flags in self._lanes[index].replay(with_call=index not in losses.opening):
            (answer,) = self._exchange_tick([ask], [flags])
            action = answer.action
            if answer.end is not None:
                self._end_lost_call(index, Ended(answer.end, answer.message, answer.action), losses)
                return -1
        return action

    def _find_largest_call(self, died: HostDied, losses: Losses) -> HostDied:
        """Find the call that holds most of the memory that the process ran out of: each is rebuilt and measured.

        If none holds much, the call that was running has asked for too much at once.
        """
        token, largest = died.token, MEMORY_OF_A_CALL
        try:
            self._transport.close()
            self._transport = self._start_process()
            self._send_programs()
            before = self._transport.resident()
            for index in range(len(self._lanes)):
                action = self._replay(index, losses)
                after = self._transport.resident()
                if after - before > largest and action >= 0:
                    token, largest = token_of(index, action), after - before
                before = after
        except HostDied as again:
            if not (again.out_of_memory and token != died.token):
                return HostDied(again.cause, again.token, again.forbidden)
        return HostDied(died.cause, token)

    def _blame(self, died: HostDied, losses: Losses) -> bool:
        """Whether a source was running when the process died. Its call is then ended, or what was asked of it is not
        asked again."""
        if source := find_loading_source(died.token, self._programs_sent):
            self._blame_record.count(died, source, f"`{self._label(source)}`", 0, "loading")
            return True
        running = self._find_running(died.token)
        if running is None and died.own and len(losses.skip) == 1:
            (lane,) = losses.skip
            running = self._find_running(token_of(lane, losses.opening.get(lane, self._lanes[lane].action)))
        of_another_tick = running is not None and running.asked_of and running.lane not in losses.skip
        if running is None or running in losses.blamed or of_another_tick:
            self._blame_record.count(died, "", "no source", 0)
            return False
        losses.blamed.add(running)
        lane, name, asked_of = running.lane, running.source_hash, running.asked_of
        message = self._blame_record.count(died, name, f"`{self._label(name)}`", lane)
        if asked_of:
            losses.skip[lane] |= asked_of
            losses.notes[lane] = message
            return True
        if losses.closes(lane, running.action):
            return True
        self._end_lost_call(lane, Ended("killed", message, running.action), losses)
        return True

    def _end_lost_call(self, lane: int, lost: Ended, losses: Losses) -> None:
        """End a call that was lost. Its lane gets the end with the present answer, or at its next step."""
        self._lanes[lane].is_open = False
        if lane in losses.skip:
            losses.skip[lane] |= wire.CALLS
            losses.ended[lane] = lost
        else:
            self._lost_calls[lane] = lost

    def _find_running(self, token: bytes) -> Running | None:
        return find_running_source(token, self._programs, len(self._lanes))

    def _label(self, name: str) -> str:
        return next((a.name for a in self._admissions.values() if a.source_hash == name), "a refused source")

    @property
    def deaths(self) -> int:
        return self._blame_record.deaths

    def cpu_seconds(self) -> float:
        return self._transport.cpu_seconds()

    def take_deaths(self) -> list[Death]:
        return self._blame_record.take()

    def close(self) -> None:
        self._transport.close()
        self._processes.close()


_ADMITTING = wire.TOKEN.pack(0, wire.ADMITS, 0)


def _refusal(rule: str, message: str, line: int = 0) -> Verdict:
    return Verdict(False, "", rule, line, message, {}, False, False, "")
