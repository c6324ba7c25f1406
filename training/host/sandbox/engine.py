"""Everything loaded in one host: answers the messages of the trusted side, one after the other.

The engine turns the body of a request into the body of its reply; pipes and processes are `serve.py`. Before it
evaluates a source it writes a token to `page`, so that the trusted side knows which call it was when it finds the
process dead or hanging.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from rlgpt.training.host import wire
from rlgpt.training.host.sandbox.dry_run import dry_run
from rlgpt.training.host.sandbox.lane import CallResult, HostLane, Item, Loaded, LoadedAction, Test
from rlgpt.training.host.sandbox.parsing import Refused
from rlgpt.training.host.sandbox.program import Language, Program
from rlgpt.training.host.sandbox.runtime import Meter, OutOfTicks, line_of, sentence
from rlgpt.training.host.sandbox.tracing import report_lines
from rlgpt.training.host.wire import AnswerCodec, Reader, Verdict

PROGRAMS_CAP = 1_024
"""Programs of admitted sources that are kept besides those loaded."""


class Engine:
    """`page` is any writable buffer of 8 bytes."""

    def __init__(self, world: ModuleType, lanes: int, seed: int, page: Any) -> None:
        self.world = world
        self.page = page
        self.meter = Meter()
        self.language = Language(world, self.meter)
        self.loaded = Loaded()
        self.codec: AnswerCodec[tuple[object, ...]] = AnswerCodec(tuple, world.NATIVE_ACTION_SIZE, 0, 0, 0)
        self.programs: dict[tuple[str, str], Program] = {}
        """(kind, source) -> its program, for what is loaded and for what was admitted since the last `load`."""
        self.lanes = [HostLane(index, seed, world, self.meter, page) for index in range(lanes)]

    def reply(self, kind: int, body: memoryview) -> bytes:
        """Raises wire.WireError for a message that the trusted side would not send."""
        if kind == wire.TICK:
            return self.tick(body)
        if kind == wire.ADMIT:
            return self.admit(Reader(body)).encode()
        if kind == wire.TRACE:
            with report_lines(self.page):
                return self.admit(Reader(body)).encode()
        if kind == wire.LOAD:
            return self.load(Reader(body))
        raise wire.WireError(f"unknown message {kind}")

    def admit(self, read: Reader) -> Verdict:
        """Kind, source, sequences of views -> verdict."""
        kind, source = wire.KINDS[read.number(0, len(wire.KINDS) - 1)], read.text()
        views = [[read.blob() for _ in range(read.number(0, 4096))] for _ in range(read.number(0, 256))]
        read.end()
        self.page[0:8] = wire.TOKEN.pack(0, wire.ADMITS, 0)
        verdict = self._decide(kind, source, views)
        # Only now: if the process ends before this line, the source that is being admitted has ended it.
        self.page[0:8] = wire.IDLE
        return verdict

    def _decide(self, kind: str, source: str, views: list[list[bytes]]) -> Verdict:
        try:
            program = self._get_program(kind, source)
            dry_run(program, self.world, self.meter, views, self.page)
        except Refused as refused:
            return Verdict(False, "", refused.rule, max(0, refused.line), refused.message, {}, False, False, "")
        except (OutOfTicks, Exception) as error:
            message = f"the source could not be checked: {sentence(error)}"
            return Verdict(False, "", "dry run", line_of(error), message, {}, False, False, "")
        if len(self.programs) < PROGRAMS_CAP:
            self.programs[kind, source] = program
        checked = program.checked
        return Verdict(
            True, checked.name, "", 0, "", checked.arguments, checked.has_available, checked.uninterruptible,
            checked.tree_hash,
        )  # fmt: skip

    def _get_program(self, kind: str, source: str) -> Program:
        """The program of a source, checked and compiled. One made before is used again, because use does not change it.
        Raises Refused."""
        program = self.programs.get((kind, source))
        if program is not None:
            return program
        checked = self.language.check(kind, source)
        try:
            return Program(checked, self.language)
        except (OutOfTicks, Exception) as error:
            raise Refused("syntax", getattr(error, "lineno", 0) or 0, sentence(error)) from None

    def load(self, read: Reader) -> bytes:
        """Replace everything loaded. The body has sources, actions, plan, predicates, rewards, whether lines are
        reported, and which sources are disabled and why; the reply is empty."""
        programs_by_name: dict[tuple[str, str], Program] = {}
        programs_by_source: dict[tuple[str, str], Program] = {}
        for index in range(read.number(0, 4096)):
            kind, name, source = wire.KINDS[read.number(0, 2)], read.text(), read.text()
            self.page[0:8] = wire.TOKEN.pack(0, wire.LOADS, index)
            programs_by_name[kind, name] = programs_by_source[kind, source] = self._get_program(kind, source)
        self.programs = programs_by_source
        parts: dict[str, list[LoadedAction | Test]] = {}

        def add_test(kind: str, name: str) -> Test:
            test = Test(programs_by_name[kind, name])
            parts.setdefault(name, []).append(test)
            return test

        def read_test(kind: str) -> Test:
            return add_test(kind, read.text())

        def read_trigger() -> Test | None:
            name = read.text()
            return add_test("done_when", name) if name else None

        def read_action() -> LoadedAction:
            name = read.text()
            arguments = {read.text(): read.literal() for _ in range(read.number(0, 16))}
            action = LoadedAction(programs_by_name["action", name], arguments)
            parts.setdefault(name, []).append(action)
            return action

        def read_item() -> Item:
            return Item(read_test("done_when"), read_trigger(), read_action())

        loaded = Loaded(
            slots=[read_action() for _ in range(read.number(0, wire.PLAN_BIT - 2))],
            plan=[read_item() for _ in range(read.number(0, wire.PLAN_BIT - 1))],
            predicates=[read_test("done_when") for _ in range(read.number(0, 64))],
            rewards=[read_test("reward") for _ in range(read.number(0, 64))],
            lines=read.flag(),
        )
        self.loaded = loaded
        sizes = len(loaded.slots), len(loaded.plan), len(loaded.predicates)
        self.codec = AnswerCodec(tuple, self.world.NATIVE_ACTION_SIZE, *sizes)
        for lane in self.lanes:
            lane.load(loaded, self.codec)
        for _ in range(read.number(0, 4096)):
            name, why = read.text(), read.text()
            for part in parts.get(name, []):
                part.disabled = why
        read.end()
        self.page[0:8] = wire.IDLE
        return b""

    def tick(self, body: memoryview) -> bytes:
        """Count, that many asks, their views -> one record per ask, their messages."""
        data = bytes(body)
        at = 4 + int.from_bytes(data[:4], "little") * wire.ASK.size
        records: list[bytes] = []
        messages: list[bytes] = []
        lanes = self.lanes
        for index, opens, flags, step, size in wire.ASK.iter_unpack(data[4:at]):
            lane = lanes[index]
            packed = data[at : at + size]
            at += size
            if flags == wire.RESUME and lane.call is not None and not lane.following:
                outcome = lane.resume(lane.call, packed)
                if not lane.notes:
                    records.append(outcome.record)
                    if outcome.message:
                        messages.append(outcome.message.encode("utf-8", "replace"))
                    continue
                record, message = self._pack_answer(lane, outcome)
            else:
                record, message = self._answer(lane, opens, flags, step, packed)
            records.append(record)
            messages.append(message)
        self.page[0:8] = wire.IDLE
        return b"".join(records + messages)

    def _answer(self, lane: HostLane, opens: int, flags: int, step: int, packed: bytes) -> tuple[bytes, bytes]:
        """The record and the message for an ask with any of its parts: reward, call, predicates, available."""
        lane.see(packed, flags)
        reward = lane.reward() if flags & wire.REWARD else 0.0
        outcome = lane.advance(flags, opens, step, packed) if flags & wire.CALLS else None
        truths = lane.predicates() if flags & wire.PREDICATES else 0
        mask = lane.available(step, packed) if flags & wire.AVAILABLE else 0
        return self._pack_answer(lane, outcome, reward, truths, mask)

    def _pack_answer(
        self, lane: HostLane, outcome: CallResult | None, reward: float = 0.0, truths: int = 0, mask: int = 0
    ) -> tuple[bytes, bytes]:
        """The record of an answer with all its parts, and its message."""
        command, end, reason, action = outcome[:4] if outcome is not None else (None, 0, "", wire.NO_ACTION)
        line = outcome.line if outcome is not None else 0
        notes, lane.notes = lane.notes, []
        message = "; ".join(filter(None, (reason, *notes)))[: wire.TEXT_CAP // 4].encode("utf-8", "replace")
        codec = self.codec
        record = codec.record.pack(
            lane.index, end if command is None else wire.HAS_COMMAND, action, len(message), line, reward, truths,
            mask.to_bytes(codec.mask_bytes, "little"), *(command or codec.no_command),
        )  # fmt: skip
        return record, message
