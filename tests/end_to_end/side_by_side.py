"""A worker that is killed while answers that were asked for before their turn wait for it."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rlgpt.agents.ahead import FILE
from rlgpt.store.history import History
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Running
from tests.patience import PATIENCE

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def about(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"])


def kill_while_answers_wait(
    begin: Callable[[ChatServer], Running], held: Callable[[ChatServer, dict[str, Any]], bool], model: Answer
) -> History:
    """Where the session ended. `held` names the request that is answered only after the kill; the others' answers are
    there before it, and none of them may be asked for, or told in a row, twice."""
    gate = threading.Event()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if held(server, request):
            assert gate.wait(120 * PATIENCE)
        return model(request)

    with ChatServer(answer) as server:
        session = begin(server)
        waiting = session.folder.path / FILE
        deadline = time.monotonic() + 100 * PATIENCE
        while not waiting.exists() or waiting.read_text().count("\n") < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        session.trainer().kill()
        whole_lines = waiting.read_text().rpartition("\n")[0].splitlines()  # the kill may have cut the last one
        kept = {json.loads(line)["call"]["request"] for line in whole_lines}
        gate.set()
        history = session.finish(300)
        asked = Counter(about(request) for request in server.requests)
    for request in kept:
        assert asked[json.dumps(json.loads(request)["messages"])] == 1
    answered = [(row["step"], row["request_hash"]) for row in session.rows("llm_call") if row["state"] == "answered"]
    assert len(answered) == len(set(answered))
    assert not waiting.exists()
    return history
