"""Everything loaded in one host: answers the messages of the trusted side, one after the other.

The engine knows nothing of processes: it turns the body of a request into the body of the reply. Before it
evaluates anything that is not its own it writes a token to `page`, so that whoever finds the process dead or
hanging knows which call it was.
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
from rlgpt.training.host.sandbox.tracing import lines_told
from rlgpt.training.host.wire import AnswerCodec, Reader, Verdict

MADE_CAP = 1_024
"""Programs kept besides those loaded."""


class Engine:
    """`page` is any writable buffer of 8 bytes."""

    def __init__(self, world: ModuleType, lanes: int, seed: int, page: Any) -> None:
        self.world = world
        self.page = page
        self.meter = Meter()
        self.language = Language(world, self.meter)
        self.loaded = Loaded()
        self.codec: AnswerCodec[tuple[object, ...]] = AnswerCodec(tuple, world.NATIVE_ACTION_SIZE, 0, 0, 0)
        self.made: dict[tuple[str, str], Program] = {}
        """(kind, source) -> the program, of what is loaded and of what was admitted since."""
        self.lanes = [HostLane(index, seed, world, self.meter, page) for index in range(lanes)]

    def reply(self, kind: int, body: memoryview) -> bytes:
        """Raises wire.WireError for a message that the trusted side would not send."""
        if kind == wire.TICK:
            return self.tick(body)
        if kind == wire.ADMIT:
            return self.admit(Reader(body)).encode()
        if kind == wire.TRACE:
            with lines_told(self.page):
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
        verdict = self._verdict(kind, source, views)
        # Only now: whatever has ended the process before this line is the doing of the source that is admitted.
        self.page[0:8] = wire.IDLE
        return verdict

    def _verdict(self, kind: str, source: str, views: list[list[bytes]]) -> Verdict:
        try:
            program = self._program(kind, source)
            dry_run(program, self.world, self.meter, views)
        except Refused as refused:
            return Verdict(False, "", refused.rule, max(0, refused.line), refused.message, {}, False, False, "")
        except (OutOfTicks, Exception) as error:
            message = f"the source could not be checked: {sentence(error)}"
            return Verdict(False, "", "dry run", line_of(error), message, {}, False, False, "")
        if len(self.made) < MADE_CAP:
            self.made[kind, source] = program
        checked = program.checked
        return Verdict(
            True, checked.name, "", 0, "", checked.arguments, checked.has_available, checked.uninterruptible,
            checked.tree_hash,
        )  # fmt: skip

    def _program(self, kind: str, source: str) -> Program:
        """Checked and compiled, or as it was made before: nothing in a program changes by its use."""
        known = self.made.get((kind, source))
        if known is not None:
            return known
        checked = self.language.check(kind, source)
        try:
            return Program(checked, self.language)
        except (OutOfTicks, Exception) as error:
            raise Refused("syntax", getattr(error, "lineno", 0) or 0, sentence(error)) from None

    def load(self, read: Reader) -> bytes:
        """Sources, actions, plan, predicates, rewards, whether lines are told, what is disabled and why; the reply is
        empty."""
        programs: dict[tuple[str, str], Program] = {}
        made: dict[tuple[str, str], Program] = {}
        for index in range(read.number(0, 4096)):
            kind, name, source = wire.KINDS[read.number(0, 2)], read.text(), read.text()
            self.page[0:8] = wire.TOKEN.pack(0, wire.LOADS, index)
            programs[kind, name] = made[kind, source] = self._program(kind, source)
        self.made = made
        parts: dict[str, list[LoadedAction | Test]] = {}

        def test(kind: str) -> Test:
            return named(kind, read.text())

        def trigger() -> Test | None:
            name = read.text()
            return named("done_when", name) if name else None

        def named(kind: str, name: str) -> Test:
            made = Test(programs[kind, name])
            parts.setdefault(name, []).append(made)
            return made

        def slot() -> LoadedAction:
            name = read.text()
            arguments = {read.text(): read.literal() for _ in range(read.number(0, 16))}
            made = LoadedAction(programs["action", name], arguments)
            parts.setdefault(name, []).append(made)
            return made

        loaded = Loaded(
            slots=[slot() for _ in range(read.number(0, wire.PLAN_BIT - 2))],
            plan=[Item(test("done_when"), trigger(), slot()) for _ in range(read.number(0, wire.PLAN_BIT - 1))],
            predicates=[test("done_when") for _ in range(read.number(0, 64))],
            rewards=[test("reward") for _ in range(read.number(0, 64))],
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
                record, message = self._whole(lane, outcome)
            else:
                record, message = self._answer(lane, opens, flags, step, packed)
            records.append(record)
            messages.append(message)
        self.page[0:8] = wire.IDLE
        return b"".join(records + messages)

    def _answer(self, lane: HostLane, opens: int, flags: int, step: int, packed: bytes) -> tuple[bytes, bytes]:
        """Everything that can be asked of a lane: reward, call, predicates, available."""
        lane.see(packed, flags)
        reward = lane.reward() if flags & wire.REWARD else 0.0
        outcome = lane.advance(flags, opens, step, packed) if flags & wire.CALLS else None
        truths = lane.predicates() if flags & wire.PREDICATES else 0
        mask = lane.available(step, packed) if flags & wire.AVAILABLE else 0
        return self._whole(lane, outcome, reward, truths, mask)

    def _whole(
        self, lane: HostLane, outcome: CallResult | None, reward: float = 0.0, truths: int = 0, mask: int = 0
    ) -> tuple[bytes, bytes]:
        """The record of an answer, and its message."""
        command, end, said, action = outcome[:4] if outcome is not None else (None, 0, "", wire.NO_ACTION)
        line = outcome.line if outcome is not None else 0
        notes, lane.notes = lane.notes, []
        message = "; ".join(filter(None, (said, *notes)))[: wire.TEXT_CAP // 4].encode("utf-8", "replace")
        codec = self.codec
        record = codec.record.pack(
            lane.index, end if command is None else wire.HAS_COMMAND, action, len(message), line, reward, truths,
            mask.to_bytes(codec.mask_bytes, "little"), *(command or codec.no_command),
        )  # fmt: skip
        return record, message
