"""Calls side by side: the rows of one after the other, also when the worker is killed in between."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rlgpt.agents.rules.model import respond
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.sameness import every_row, outcome
from tests.end_to_end.side_by_side import about, kill_while_answers_wait

TASK = "make_stone_pickaxe"
LOOP = {"iterations": 1, "target": 1.0, "dev_first": 4, "test_episodes": 2}


def session_at(make: Make, server: ChatServer, parallel: int) -> Running:
    llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules", "parallel": parallel}
    return make(TASK, llm=llm, loop=LOOP, critic="model")


class LastFirst:
    """The rule-based model, or another; of the requests that are under way together the last is answered first."""

    def __init__(self, model: Callable[[dict[str, Any]], dict[str, Any]] = respond) -> None:
        self._model = model
        self._lock, self._under_way = threading.Lock(), 0
        self.most = 0

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._under_way += 1
            mine = self._under_way
            self.most = max(self.most, mine)
        time.sleep(0.3)
        deadline = time.monotonic() + 5
        while self._under_way > mine and time.monotonic() < deadline:
            time.sleep(0.005)
        with self._lock:
            self._under_way -= 1
        return self._model(request)


def test_a_session_whose_calls_are_side_by_side_has_the_rows_of_one_after_the_other(make: Make) -> None:
    with ChatServer() as server:
        alone = session_at(make, server, 1)
        assert alone.finish(300).result in ("finished", "succeeded")
        asked = Counter(map(about, server.requests))
    with ChatServer(model := LastFirst()) as server:
        together = session_at(make, server, 8)
        assert together.finish(300).result in ("finished", "succeeded")
        assert Counter(map(about, server.requests)) == asked, "nothing is asked that one after the other would not ask"
    assert model.most > 2
    one, other = every_row(alone.folder.path), every_row(together.folder.path)
    for table, rows in one.items():
        assert other[table] == rows, f"{table} differs"
    replayed = make(TASK, llm={"kind": f"replay:{together.folder.id}"}, loop=LOOP)
    replayed.finish(300)
    for table, rows in outcome(together.folder.path).items():
        assert outcome(replayed.folder.path)[table] == rows, f"{table} of the replay differs"


def test_a_kill_pays_for_no_answer_twice_that_had_arrived(make: Make) -> None:
    history = kill_while_answers_wait(
        lambda server: session_at(make, server, 8),
        lambda server, request: request in server.requests[1:2],  # the first draft of one of the sub-actions
        respond,
    )
    assert history.result in ("finished", "succeeded"), history.reason
