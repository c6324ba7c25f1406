"""The store's laws, on random stories."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgpt.store import events
from rlgpt.store import tables as t
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import History, fold, fold_all
from rlgpt.store.reader import Reader
from rlgpt.store.timeline import Timeline
from rlgpt.store.writer import Writer

RANDOM = st.randoms(use_true_random=False)
LAW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
Tell = Callable[[random.Random, int], list[list[t.Row]]]
NewSession = Callable[..., SessionFolder]


def test_a_seek_from_any_kept_state_equals_the_fold_of_all_rows_before_it(
    new_session: NewSession, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgpt.store.timeline.SPACING", 7)
    monkeypatch.setattr("rlgpt.store.timeline.MOST_KEPT", 4)

    @LAW
    @given(RANDOM, st.lists(st.integers(0, 200), min_size=1, max_size=8))
    def law(rng: random.Random, cursors: list[int]) -> None:
        session = new_session()
        with Writer(session) as writer, Reader(session) as reader:
            write(writer, tell(rng, 40))
            rows = reader.changes_since(0, None)
            for cursor in cursors:
                assert reader.history_at(cursor) == fold_all(r for r in rows if r[1]["seq"] <= cursor)

    law()


def test_folding_one_by_one_equals_folding_what_the_reader_gives_in_pieces(new_session: NewSession, tell: Tell) -> None:
    @LAW
    @given(RANDOM, st.integers(1, 50))
    def law(rng: random.Random, piece: int) -> None:
        session = new_session()
        with Writer(session) as writer, Reader(session) as reader:
            live = fold_all(reader.changes_since(0, piece))
            for rows in tell(rng, 30):
                with writer.transaction() as tx:
                    for row in rows:
                        tx.add(row)
                while changes := reader.changes_since(live.seq, piece):
                    fold_all(changes, live)
                assert live == writer.history
            assert live == reader.history_at()

    law()


def test_rows_of_a_transaction_that_raised_are_neither_stored_nor_folded(new_session: NewSession, tell: Tell) -> None:
    @LAW
    @given(RANDOM, st.lists(st.booleans(), min_size=30, max_size=30))
    def law(rng: random.Random, fails: list[bool]) -> None:
        session = new_session()
        kept = 1
        with Writer(session) as writer, Reader(session) as reader:
            for rows, fail in zip(tell(rng, 5), fails, strict=False):
                before = writer.history.copy()
                try:
                    with writer.transaction() as tx:
                        for row in rows:
                            tx.add(row)
                        if fail:
                            raise KeyError("the step failed")
                except KeyError:
                    assert writer.history == before
                    break
                kept += len(rows)
            assert [row["seq"] for _, row in reader.changes_since(0, None)] == list(range(1, kept + 1))
            assert fold_all(reader.changes_since(0, None)) == writer.history

    law()


def test_a_copied_history_is_not_touched_by_folding_the_original_on(tell: Tell, new_session: NewSession) -> None:
    session = new_session()
    with Writer(session) as writer, Reader(session) as reader:
        write(writer, tell(random.Random(3), 120))
        changes = reader.changes_since(0, None)
    state = History()
    copies: list[tuple[History, int]] = []
    for number, (table, row) in enumerate(changes):
        fold(state, table, row)
        if number % 10 == 0:
            copies.append((state.copy(), number))
    for copy, number in copies:
        assert copy == fold_all(changes[: number + 1])


def test_a_reopened_session_continues_its_sequence_and_its_history(session: SessionFolder, tell: Tell) -> None:
    with Writer(session) as writer:
        write(writer, tell(random.Random(1), 30))
        before = writer.history.copy()
    with Writer(session) as writer, Reader(session) as reader:
        assert writer.history == before
        assert writer.incarnation == 2
        seq = writer.event(events.Resumed(from_seq=before.seq, cause="test"))
        assert seq == before.seq + 1
        assert reader.changes_since(before.seq)[0][1]["incarnation"] == 2


def write(writer: Writer, story: list[list[t.Row]]) -> None:
    for rows in story:
        with writer.transaction() as tx:
            for row in rows:
                tx.add(row)


def test_timeline_reads_rows_once_when_seeking_back_and_forth() -> None:
    rows = [("log", {"seq": n, "incarnation": 1, "at": 0.0, "active": 0.0}) for n in range(1, 10_001)]
    asked: list[int] = []

    def read(after: int, upto: int | None, limit: int | None) -> list[tuple[str, dict[str, Any]]]:
        found = rows[after : 10_000 if upto is None else upto][:limit]
        asked.append(len(found))
        return found

    timeline = Timeline(read)
    assert timeline.at().seq == 10_000
    asked.clear()
    for cursor in (9_999, 1, 5_000, 4_999, 10_000):
        assert timeline.at(cursor).seq == cursor
    assert max(asked) <= 2000 and sum(asked) <= 5 * 2000
