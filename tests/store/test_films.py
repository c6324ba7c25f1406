"""The film of an episode is one row; damage and bad intent in it cost the film and nothing else."""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgpt.store.films import FORMAT, MOST_BYTES, FilmPlace, Frame, add, packed, unpacked

FRAMES = st.lists(
    st.builds(
        Frame, st.integers(0, 10_000), st.just("text"), st.text(), st.binary(max_size=300), st.text(), st.text(),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    max_size=40, unique_by=lambda frame: frame.step,
)  # fmt: skip


def row(body: bytes, form: str = f"{FORMAT}text", **more: Any) -> Any:
    return {"format": form, "body": body, "step": 0, "decision": "", **more}


def sound(frame: Frame) -> Frame:
    """A text that a store may hold has no NUL."""
    texts = {"decision": frame.decision, "primitive": frame.primitive, "inner": frame.inner}
    return frame._replace(**{name: str(text).replace("\0", "\ufffd") for name, text in texts.items()})


@given(FRAMES)
def test_a_film_gives_back_its_frames_by_step(frames: list[Frame]) -> None:
    assert unpacked([row(packed(frames))]) == [sound(f) for f in sorted(frames, key=lambda f: f.step)]


def test_a_reward_that_is_no_number_is_none() -> None:
    (frame,) = unpacked([row(packed([Frame(0, "text", "", b"x", "", "", math.nan)]))])
    assert frame.total is None


def test_frames_that_have_a_row_each_are_one_film() -> None:
    rows = [row(b"%d" % step, "text", step=step, decision="noop", primitive=None, inner=None) for step in (3, 1, 2)]
    assert [(f.step, f.body, f.primitive) for f in unpacked(rows)] == [
        (1, b"1", None),
        (2, b"2", None),
        (3, b"3", None),
    ]


def test_a_film_for_every_run_of_rows_of_an_episode_or_for_a_packed_row() -> None:
    films: list[FilmPlace] = []
    for seq, episode, form in (
        (1, 5, "text"),
        (2, 5, "text"),
        (3, 6, "text"),
        (4, 7, "film:text"),
        (5, 7, "film:text"),
    ):
        add(films, FilmPlace(seq, "train", 1, episode), form)
    assert [film.seq for film in films] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no zlib",
        packed([Frame(0, "text", "", b"x" * 99, "", "", 0.0)])[:12],
        zlib.compress(b"[]"[:1]),
        zlib.compress(b"{}"),
        zlib.compress(b"[[1]]\n"),
        zlib.compress(json.dumps([["a", "b", "c", "d", "e", "f"]]).encode()),
        zlib.compress(b'[[1, "", "", "", 1e999, Infinity]]'),
        zlib.compress(b"[" * 50_000),
        zlib.compress(b"[" + b"[]," * MOST_BYTES),
    ],
)
def test_a_damaged_film_has_no_frames(body: bytes) -> None:
    assert unpacked([row(body)]) == []


def test_a_film_that_swells_beyond_all_measure_is_cut() -> None:
    body = zlib.compress(json.dumps([[0, "", "", "", 0.0, 10**12]]).encode() + b"\n" + bytes(4 * MOST_BYTES))
    (frame,) = unpacked([row(body)])
    assert len(frame.body) < MOST_BYTES


@given(st.binary())
def test_any_bytes_are_a_film_or_none(body: bytes) -> None:
    unpacked([row(body), row(zlib.compress(body))])
