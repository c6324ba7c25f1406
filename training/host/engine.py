"""Everything loaded in one host: answers the messages of the trusted side, one after the other.

The engine knows nothing of processes: it turns the body of a request into the body of the reply. Before it
evaluates anything that is not its own it writes a token to `page`, so that whoever finds the process dead or
hanging knows which call it was.
"""

from __future__ import annotations

from resource import RUSAGE_SELF, getrusage
from types import ModuleType
from typing import Any

from rlgpt.training.host import wire
from rlgpt.training.host.admission import Checked, Refused
from rlgpt.training.host.dry_run import dry_run
from rlgpt.training.host.lane import Item, Lane, Loaded, Slot, Test
from rlgpt.training.host.program import Language, Program
from rlgpt.training.host.runtime import Meter, OutOfTicks, sentence
from rlgpt.training.host.wire import AnswerCodec, Reader, Verdict


class Engine:
    """`page` is any writable buffer of 8 bytes."""

    def __init__(self, world: ModuleType, lanes: int, seed: int, page: Any) -> None:
        self.world = world
        self.page = page
        self.meter = Meter()
        self.language = Language(world, self.meter)
        self.loaded = Loaded()
        self.codec = AnswerCodec(world.COMMAND_SIZE, 0)
        self.lanes = [Lane(index, seed, world, self.meter, page) for index in range(lanes)]
        self.hashes: dict[str, list[Slot | Test]] = {}

    def reply(self, kind: int, body: memoryview) -> bytes:
        """Raises wire.WireError for a message that the trusted side would not send."""
        if kind == wire.TICK:
            return self.tick(body)
        if kind == wire.ADMIT:
            return self.admit(Reader(body)).encode()
        if kind == wire.LOAD:
            return self.load(Reader(body))
        if kind == wire.DISABLE:
            return self.disable(Reader(body))
        if kind == wire.MEMORY:
            return wire.Writer().number(getrusage(RUSAGE_SELF).ru_maxrss * 1024).done()
        raise wire.WireError(f"unknown message {kind}")

    def admit(self, read: Reader) -> Verdict:
        """Kind, source, sequences of views -> verdict."""
        kind, source = wire.KINDS[read.number(0, len(wire.KINDS) - 1)], read.text()
        views = [[read.blob() for _ in range(read.number(0, 4096))] for _ in range(read.number(0, 256))]
        read.end()
        self.page[0:8] = wire.TOKEN.pack(0, wire.ADMITS, 0)
        try:
            checked = self.language.check(kind, source)
            dry_run(self._program(checked), self.world, self.meter, views, self.page)
        except Refused as refused:
            said = refused.message[:1500]
            return Verdict(False, "", refused.rule, max(0, refused.line), said, {}, False, False, "")
        finally:
            self.page[0:8] = wire.IDLE
        return Verdict(
            True, checked.name, "", 0, "", checked.arguments, checked.has_available, checked.ignore_alarm,
            checked.tree_hash,
        )  # fmt: skip

    def _program(self, checked: Checked) -> Program:
        try:
            return Program(checked, self.language)
        except (OutOfTicks, Exception) as error:
            raise Refused("syntax", getattr(error, "lineno", 0) or 0, sentence(error)) from None

    def load(self, read: Reader) -> bytes:
        """Sources, actions, plan, predicates, rewards, disabled hashes; the reply is empty."""
        programs: dict[str, Program] = {}
        kinds: dict[str, str] = {}
        for _ in range(read.number(0, 4096)):
            name, kind, source = read.text(), wire.KINDS[read.number(0, 2)], read.text()
            programs[name], kinds[name] = self._program(self.language.check(kind, source)), kind
        self.hashes = {}
        loaded = Loaded()

        def test(name: str) -> Test:
            made = Test(programs[name])
            self.hashes.setdefault(name, []).append(made)
            return made

        def slot() -> Slot:
            name = read.text()
            made = Slot(programs[name], {read.text(): read.literal() for _ in range(read.number(0, 16))})
            self.hashes.setdefault(name, []).append(made)
            return made

        loaded.slots = [slot() for _ in range(read.number(0, wire.PLAN_BIT - 2))]
        loaded.plan = [Item(test(read.text()), slot()) for _ in range(read.number(0, wire.PLAN_BIT - 1))]
        loaded.predicates = [test(read.text()) for _ in range(read.number(0, 64))]
        loaded.rewards = [test(read.text()) for _ in range(read.number(0, 64))]
        self.loaded = loaded
        self.codec = AnswerCodec(self.world.COMMAND_SIZE, len(loaded.slots))
        for lane in self.lanes:
            lane.load(loaded)
        return self.disable(read)

    def disable(self, read: Reader) -> bytes:
        """Hashes of sources that are not run any more."""
        for _ in range(read.number(0, 4096)):
            for part in self.hashes.get(read.text(), []):
                part.disabled = True
        read.end()
        self.page[0:8] = wire.IDLE
        return b""

    def tick(self, body: memoryview) -> bytes:
        """Count, that many asks, their views -> one record per ask, their messages."""
        count = int.from_bytes(body[:4], "little")
        at = 4 + count * wire.ASK.size
        records: list[bytes] = []
        messages: list[bytes] = []
        lanes, codec = self.lanes, self.codec
        pack, no_command = codec.record.pack, codec.no_command
        none_available = bytes(codec.mask_bytes)
        for index, opens, flags, step, size in wire.ASK.iter_unpack(body[4:at]):
            lane = lanes[index]
            packed = bytes(body[at : at + size])
            at += size
            lane.see(packed, flags)
            reward = lane.reward() if flags & wire.REWARD else 0.0
            command, end, message, action = None, 0, "", wire.NO_ACTION
            if flags & (wire.OPEN | wire.RESUME):
                command, end, message, action = lane.advance(flags, opens, step, packed)
            truths = lane.predicates() if flags & wire.PREDICATES else 0
            mask = none_available
            if flags & wire.AVAILABLE:
                mask = lane.available().to_bytes(codec.mask_bytes, "little")
            if lane.notes:
                message = "; ".join(filter(None, (message, *lane.notes)))
                lane.notes = []
            encoded = message.encode("utf-8", "replace")[: wire.TEXT_CAP] if message else b""
            code = end if command is None else 0x80
            records.append(
                pack(index, code, action, len(encoded), *(command or no_command), reward, truths, mask)
            )
            if encoded:
                messages.append(encoded)
        self.page[0:8] = wire.IDLE
        return b"".join(records + messages)
