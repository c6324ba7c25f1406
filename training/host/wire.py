"""Frames between the trusted side and an action host: fixed structs, length caps, no pickle.

Both sides import this file, so it is stdlib only. A frame is `FRAME` followed by its body. Bodies of the rare
messages are written field by field (`Writer`, `Reader`); a tick is one array of `ASK` records and the views
behind it, answered by one array of fixed records and the messages behind it.
Everything the trusted side decodes came from a process that may be hostile: a wrong byte raises `WireError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any, Generic, Literal, NamedTuple, TypeVar

FRAME = Struct("<III")
"""Body length, sequence number, message kind. The reply repeats sequence and kind."""
FIELD_CAP = 1 << 22
"""Bytes of any one field of a message to a host; `worlds.packed` keeps views below it."""
REPLY_CAP = 1 << 18
TEXT_CAP = 2_000
"""Bytes of any one text in a reply."""

HELLO, ADMIT, LOAD, TICK, TRACE = range(1, 6)
"""TRACE is ADMIT again, telling each line of the source on the page."""

ASK = Struct("<HHBxxxII")
"""lane, action to open, flags, three spare bytes, env step (seeds the rng), length of the view."""
OPEN, RESUME, START, WHOLE, PREDICATES, AVAILABLE, REWARD = (1 << bit for bit in range(7))
CALLS = OPEN | RESUME
REBUILD = CALLS | START | WHOLE
"""The flags that change a lane's state; the others only ask."""

TOKEN = Struct("<HBxHxx")
"""Written to the shared page before anything of a lane is evaluated: lane, what, index."""
LINE, LINE_AT = Struct("<H"), 6
"""In the spare bytes of the token: the line that runs, where lines are told."""
(
    DOES_NOTHING,
    RUNS_ACTION,
    RUNS_PLAN_ACTION,
    RUNS_PLAN_TEST,
    RUNS_PREDICATE,
    RUNS_AVAILABLE,
    RUNS_REWARD,
    DECODES,
    ADMITS,
    LOADS,
) = range(10)
IDLE = TOKEN.pack(0, DOES_NOTHING, 0)

FOLLOW_PLAN = 0xFFFF
PLAN_BIT = 0x8000
NO_ACTION = 0x7FFF
TRIGGER_BIT = 0x4000
"""In a token of RUNS_PLAN_TEST: the trigger of an item, not its done_when."""
End = Literal["return", "error", "bad_yield", "budget", "killed", "quarantined"]
ENDS: tuple[End | None, ...] = (None, "return", "error", "bad_yield", "budget", "killed", "quarantined")
HAS_COMMAND = 0x80
CACHE_CAP = 4_096
"""Records whose decoded form is remembered: most answers of a run are one of a few."""
KINDS = ("action", "done_when", "reward")

OUT_OF_MEMORY = 77
"""Exit status of a host that ran into its memory limit outside any call it could blame."""
FAILED = 78
"""Exit status of a host in which an error came through where none should."""

UNLOCKED = "unlocked"
"""In the reply to HELLO: why the lock that the mode promises could not be had."""


class WireError(Exception):
    """The other side sent something that is not in the protocol."""


class Writer:
    """Builds a body field by field."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def number(self, value: int) -> Writer:
        self.parts.append(value.to_bytes(8, "little", signed=True))
        return self

    def blob(self, value: bytes) -> Writer:
        self.parts.append(len(value).to_bytes(4, "little"))
        self.parts.append(value)
        return self

    def text(self, value: str) -> Writer:
        return self.blob(value.encode("utf-8", "replace"))

    def literal(self, value: object) -> Writer:
        """A value of a `Literal`: str, bool, int or None."""
        if value is None:
            return self.text("n")
        if isinstance(value, bool):
            return self.text("b").number(value)
        if isinstance(value, int):
            return self.text("i").number(value)
        if isinstance(value, str):
            return self.text("s").text(value)
        raise WireError(f"{type(value).__name__} cannot be an argument of an action")

    def done(self) -> bytes:
        return b"".join(self.parts)


class Reader:
    """Reads what a `Writer` wrote; anything else raises `WireError`."""

    def __init__(self, body: bytes | memoryview, text_cap: int = FIELD_CAP) -> None:
        self.body = memoryview(body)
        self.at = 0
        self.text_cap = text_cap

    def take(self, size: int) -> memoryview:
        end = self.at + size
        if size < 0 or end > len(self.body):
            raise WireError("a message is shorter than it says")
        part = self.body[self.at : end]
        self.at = end
        return part

    def number(self, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
        value = int.from_bytes(self.take(8), "little", signed=True)
        if not low <= value <= high:
            raise WireError(f"{value} is not in [{low}, {high}]")
        return value

    def flag(self) -> bool:
        return bool(self.number(0, 1))

    def blob(self) -> bytes:
        size = int.from_bytes(self.take(4), "little")
        if size > self.text_cap:
            raise WireError(f"a field of {size} bytes is longer than {self.text_cap}")
        return bytes(self.take(size))

    def text(self) -> str:
        return self.blob().decode("utf-8", "replace")

    def literal(self) -> object:
        tag = self.text()
        if tag == "n":
            return None
        if tag == "b":
            return self.flag()
        if tag == "i":
            return self.number()
        if tag == "s":
            return self.text()
        raise WireError("an argument has no known type")

    def end(self) -> None:
        if self.at != len(self.body):
            raise WireError("a message is longer than it says")


class Verdict(NamedTuple):
    """What a host says about a source; the trusted side adds the hash of what it sent."""

    admitted: bool
    name: str
    rule: str
    line: int
    message: str
    arguments: Mapping[str, tuple[object, ...]]
    has_available: bool
    uninterruptible: bool
    tree_hash: str

    def encode(self) -> bytes:
        out = Writer().number(self.admitted).text(self.name).text(self.rule).number(self.line)
        out.text(self.message[: TEXT_CAP // 4]).number(self.has_available).number(self.uninterruptible)
        out.text(self.tree_hash).number(len(self.arguments))
        for name, values in self.arguments.items():
            out.text(name).number(len(values))
            for value in values:
                out.literal(value)
        return out.done()

    @classmethod
    def decode(cls, body: bytes | memoryview) -> Verdict:
        read = Reader(body, TEXT_CAP)
        admitted, name, rule = read.flag(), read.text(), read.text()
        line, message = read.number(0, 1 << 20), read.text()
        has_available, uninterruptible, tree_hash = read.flag(), read.flag(), read.text()
        arguments = {}
        for _ in range(read.number(0, 16)):
            argument = read.text()
            arguments[argument] = tuple(read.literal() for _ in range(read.number(1, 6)))
        read.end()
        return cls(admitted, name, rule, line, message, arguments, has_available, uninterruptible, tree_hash)


T = TypeVar("T", bound=tuple[Any, ...])


class AnswerCodec(Generic[T]):
    """The reply to a tick, for one world and one set of programs.

    A record is: lane u16, end u8 (bit 7: has a command), spare, action u16, length of its message u16, line u16,
    reward f64, predicates u64, available bits, command i16 each. The messages follow the records.
    """

    def __init__(self, answer: type[T], native_action_size: int, actions: int, plan: int, predicates: int) -> None:
        self.answer = answer
        self.actions = actions
        self.plan = plan
        self.predicates = predicates
        self.mask_bytes = (actions + 7) // 8
        self.record = Struct(f"<HBxHHHdQ{self.mask_bytes}s{native_action_size}h")
        self.no_command = (0,) * native_action_size
        self.none_available = bytes(self.mask_bytes)
        self._cache: dict[bytes, T] = {}

    def bare(
        self, lane: int, command: tuple[int, ...] | None, end: int, action: int, length: int, line: int = 0
    ) -> bytes:
        """The record of an answer that was asked for nothing but its call."""
        code = end if command is None else HAS_COMMAND
        numbers = command or self.no_command
        return self.record.pack(lane, code, action, length, line, 0.0, 0, self.none_available, *numbers)

    def decode(self, reply: bytes, lanes: Sequence[int]) -> list[T]:
        """One answer for each of `lanes`. Raises WireError for a reply that no correct host sends."""
        size, cache = self.record.size, self._cache
        start, tail = 0, size * len(lanes)
        answers = []
        for lane in lanes:
            record = reply[start : start + size]
            start += size
            answer = cache.get(record)
            if answer is None or answer[0] != lane:
                answer, length = self._decode(record, lane)
                if length:
                    message = reply[tail : tail + length].decode("utf-8", "replace")
                    tail += length
                    answer = self._with(answer, message)
                elif len(cache) < CACHE_CAP:
                    cache[record] = answer
            answers.append(answer)
        if tail != len(reply):
            raise WireError("a tick's answer has another length than it says")
        return answers

    def _with(self, answer: T, message: str) -> T:
        return tuple.__new__(self.answer, (*answer[:3], message, *answer[4:]))

    def _decode(self, record: bytes, expected_lane: int) -> tuple[T, int]:
        """An answer without its message, and the length of the message. Raises WireError."""
        if len(record) != self.record.size:
            raise WireError("a tick's answer is too short")
        fields = self.record.unpack(record)
        lane, code, action, length, line, reward, truths, mask = fields[:8]
        end, has_command = code & ~HAS_COMMAND, bool(code & HAS_COMMAND)
        if lane != expected_lane or end >= len(ENDS) or (has_command and end):
            raise WireError("a tick's answer names another lane or an unknown end")
        if action == NO_ACTION:
            action = -1
        elif action & PLAN_BIT:
            if action & ~PLAN_BIT >= self.plan:
                raise WireError("a tick's answer names an item that the plan does not have")
        elif action >= self.actions:
            raise WireError("a tick's answer names an action that is not loaded")
        if not -1.0 <= reward <= 1.0:
            raise WireError("a generated reward is not in [-1, 1]")
        available = int.from_bytes(mask, "little")
        if truths >> self.predicates or available >> self.actions:
            raise WireError("a tick's answer names a predicate or an action that is not loaded")
        if length > TEXT_CAP:
            raise WireError("a message is longer than it may be")
        command = fields[8:] if has_command else None
        answer = (lane, command, ENDS[end], "", action, truths, available, reward, line)
        return tuple.__new__(self.answer, answer), length
