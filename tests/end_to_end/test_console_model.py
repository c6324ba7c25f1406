"""An operator and a language model, in a real terminal: an answer that is watched and cut short, and a long absence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlgpt.agents.rules.model import respond
from rlgpt.console.preferences import Preferences
from rlgpt.store.states import MODEL
from tests.agents.chat_server import DONE, ChatServer, Reply, chunks, event, server_error
from tests.console.tmux import Tmux
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.consoles import RLGPT, states

pytestmark = pytest.mark.tmux
SHORT = {"iterations": 0, "dev_first": 2, "test_episodes": 2}


def session_at(make: Make, server: ChatServer) -> Running:
    return make("make_wood_pickaxe", llm={"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}, loop=SHORT)


def console(session: Running) -> Tmux:
    """For a person who has seen the tour."""
    home = Path(session.environment["RLGPT_HOME"])
    seen = Preferences.load(home)
    seen.toured = True
    seen.save(home)
    return Tmux([*RLGPT, "attach", session.folder.id], (120, 40), session.environment)


class Rambling:
    """The rule-based model, whose first answer about code thinks for ever, and tries to move the cursor while at it."""

    def __init__(self) -> None:
        self._asked, self.over = 0, threading.Event()

    def __call__(self, request: dict[str, Any]) -> Any:
        self._asked += 1
        return Reply(pieces=self._thinking()) if self._asked == 2 else respond(request)  # type: ignore[arg-type]

    def _thinking(self) -> Iterator[bytes]:
        said = {"id": "c", "choices": [{"message": {"reasoning_content": "Which way?\x1b[2J"}, "finish_reason": None}]}
        (thought,) = [piece for piece in chunks(said, usage=False, pieces=1) if "Which" in str(piece)]
        while not self.over.wait(0.05):
            yield event(thought)
        yield DONE


def test_an_answer_is_watched_while_it_comes_and_cut_short(make: Make) -> None:
    with ChatServer(model := Rambling()) as server:
        session = session_at(make, server)
        with console(session) as t:
            t.until("1 Plan")
            t.keys("7")
            text = t.until(lambda text: "Which way?" in text and "tokens/s" in text, 200)
            assert "fast agent" in text and "␛[2J" in text
            t.keys("i")
            t.until("cancelled by", 60)
            model.over.set()
            history = session.finish(200)
            t.until(lambda text: "tokens/s" not in text)
    assert history.result in ("finished", "succeeded"), history.reason
    assert states(history, "cancel_call") == ["applied"]
    told = [row for row in session.rows("llm_call") if row["state"] == "failed"]
    assert len(told) == 1 and told[0]["error"].startswith("cancelled: cancelled by ")
    assert " after 0 characters" not in told[0]["error"]
    again = session.rows("llm_call")[session.rows("llm_call").index(told[0]) + 1]
    assert again["step"] == told[0]["step"], "the same question, once more"


class Away:
    """The rule-based model, once it is there."""

    def __init__(self) -> None:
        self.there = False

    def __call__(self, request: dict[str, Any]) -> Any:
        return respond(request) if self.there else server_error(503)


def test_a_model_that_is_away_is_announced_and_tried_again_at_once_when_the_operator_says_so(make: Make) -> None:
    with ChatServer(away := Away()) as server:
        session = session_at(make, server)
        with console(session) as t:
            t.until(lambda text: "no answer, try 3, next in" in text and "(R: now)" in text, 200)
            text = t.until(lambda text: "no answer, try 4, next in" in text, 100)
            assert "waits for the model" in text and "503" in text
            away.there = True
            t.keys("R")
            t.until(lambda text: "no answer, try" not in text, 60)
            history = session.finish(200)
    assert history.result in ("finished", "succeeded"), history.reason
    assert states(history, "resume") == ["applied"] and history.waiting_for != MODEL
