"""The trusted side reads whatever a host may send: it understands it or raises WireError, nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgpt.training.host import wire
from rlgpt.training.host.api import Answer
from rlgpt.training.host.wire import AnswerCodec, Reader, Verdict, WireError, Writer

CODEC: AnswerCodec[Answer] = AnswerCodec(Answer, 2, 3, 2, 5)
LITERALS = st.one_of(st.none(), st.booleans(), st.integers(-(1 << 62), 1 << 62), st.text(max_size=50))
VERDICTS = st.builds(
    Verdict,
    st.booleans(),
    st.text(max_size=40),
    st.text(max_size=40),
    st.integers(0, 1 << 20),
    st.text(max_size=400),
    st.dictionaries(st.text(max_size=20), st.lists(LITERALS, min_size=1, max_size=6).map(tuple), max_size=4),
    st.booleans(),
    st.booleans(),
    st.text(max_size=32),
)


@given(VERDICTS)
def test_a_verdict_survives_the_wire(verdict: Verdict) -> None:
    assert Verdict.decode(verdict.encode()) == verdict


@settings(max_examples=300)
@given(st.binary(max_size=400))
def test_any_bytes_are_a_verdict_or_a_wire_error(body: bytes) -> None:
    try:
        Verdict.decode(body)
    except WireError:
        return


@settings(max_examples=300)
@given(VERDICTS, st.integers(0, 2000), st.integers(0, 255))
def test_a_damaged_verdict_is_a_verdict_or_a_wire_error(verdict: Verdict, at: int, byte: int) -> None:
    body = bytearray(verdict.encode())
    body[at % len(body)] = byte
    try:
        Verdict.decode(bytes(body))
    except WireError:
        return


@settings(max_examples=500)
@given(st.binary(max_size=200), st.lists(st.integers(0, 8), max_size=5))
def test_any_bytes_are_answers_or_a_wire_error(reply: bytes, lanes: list[int]) -> None:
    try:
        answers = CODEC.decode(reply, lanes)
    except WireError:
        return
    for lane, answer in zip(lanes, answers, strict=True):
        _plausible(answer, lane)


@settings(max_examples=500)
@given(st.integers(0, 100), st.integers(0, 255))
def test_a_damaged_answer_is_plausible_or_a_wire_error(at: int, byte: int) -> None:
    reply = bytearray(CODEC.bare(3, (1, -2), 0, 2, 0) + CODEC.bare(4, None, 2, 0x8001, 4) + b"oops")
    reply[at % len(reply)] = byte
    try:
        answers = CODEC.decode(bytes(reply), [3, 4])
    except WireError:
        return
    _plausible(answers[0], 3)
    _plausible(answers[1], 4)


def _plausible(answer: Answer, lane: int) -> None:
    assert answer.lane == lane
    assert answer.command is None or (len(answer.command) == 2 and answer.end is None)
    assert -1 <= answer.action < 3 or 0 <= answer.action - wire.PLAN_BIT < 2
    assert -1.0 <= answer.reward <= 1.0
    assert 0 <= answer.predicates < 1 << 5 and 0 <= answer.available < 1 << 3
    assert len(answer.message) <= wire.TEXT_CAP


def test_an_answer_survives_the_wire() -> None:
    reply = CODEC.bare(3, (1, -2), 0, 2, 0, 17) + CODEC.bare(4, None, 2, 0x8001, 4) + b"oops"
    assert CODEC.decode(reply, [3, 4]) == [
        Answer(3, (1, -2), None, "", 2, 0, 0, 0.0, 17),
        Answer(4, None, "error", "oops", 0x8001, 0, 0, 0.0),
    ]


@pytest.mark.parametrize(
    ("reward", "predicates", "mask"), [(2.0, 0, 0), (float("nan"), 0, 0), (0.0, 32, 0), (0.0, 0, 8)]
)
def test_out_of_range_fields_are_refused(reward: float, predicates: int, mask: int) -> None:
    record = CODEC.record.pack(0, wire.HAS_COMMAND, 0, 0, 0, reward, predicates, bytes([mask]), 1, 1)
    with pytest.raises(WireError):
        CODEC.decode(record, [0])


@given(st.binary(max_size=60))
def test_fields_are_read_as_written(blob: bytes) -> None:
    body = Writer().blob(blob).number(-5).text("x").done()
    read = Reader(body)
    assert (read.blob(), read.number(), read.text()) == (blob, -5, "x")
    read.end()
    with pytest.raises(WireError):
        Reader(body, text_cap=len(blob) - 1).blob() if blob else Reader(b"").number()
