"""Whoever answers sees the request and nothing else, and the answer reaches the client word for word."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rlgpt.agents.client import make_client
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.endpoint import RULES_MODEL
from rlgpt.agents.rules.model import respond
from tests.agents.asker import ASKED, CODE, chain, settings
from tests.agents.queue_server import QueueServer
from tests.agents.toys import Ledger


class Watcher(threading.Thread):
    """Answers each request of a folder from its file alone."""

    def __init__(self, folder: Path, answer: Any) -> None:
        super().__init__(daemon=True)
        self.folder, self.answer, self.seen = folder, answer, list[dict[str, Any]]()
        self.start()

    def run(self) -> None:
        done: set[str] = set()
        while True:
            for file in sorted(self.folder.glob("*.request.json")):
                if file.name not in done:
                    done.add(file.name)
                    self.seen.append(json.loads(file.read_text()))
                    part = file.with_suffix(".tmp")
                    part.write_text(self.answer(self.seen[-1]))
                    part.rename(self.folder / file.name.replace("request.json", "answer.txt"))
            time.sleep(0.02)


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_in_the_folder_is_the_reply(tmp_path: Path, stream: bool) -> None:
    watcher = Watcher(tmp_path, lambda asked: CODE)
    with QueueServer(tmp_path) as server:
        client = make_client(settings(server.url, stream=stream, timeout=60), Ledger(), {})
        assert client.ask("fast", "one", ASKED, CodeReply).note == "n"
    (asked,) = watcher.seen
    assert set(asked) == {"messages", "schema"} and asked["messages"] == ASKED
    assert asked["schema"]["required"] == ["source", "note"]


def test_a_request_asked_again_takes_the_answer_that_is_there(tmp_path: Path) -> None:
    with QueueServer(tmp_path) as server:
        llm = settings(server.url, timeout=60)
        Watcher(tmp_path, lambda asked: CODE)
        make_client(llm, Ledger(), {}).ask("fast", "one", ASKED, CodeReply)
    with QueueServer(tmp_path) as server:
        make_client(settings(server.url, timeout=60), Ledger(), {}).ask("fast", "one", ASKED, CodeReply)
    assert len(list(tmp_path.glob("*.request.json"))) == 1


def test_a_whole_chain_of_questions_can_be_answered_through_the_folder(tmp_path: Path) -> None:
    def answer(asked: dict[str, Any]) -> str:
        return str(respond(asked)["choices"][0]["message"]["content"])

    watcher = Watcher(tmp_path, answer)
    with QueueServer(tmp_path) as server:
        replies = chain(make_client(settings(server.url, model=RULES_MODEL, timeout=60), Ledger(), {}))
    assert replies == chain(make_client({"kind": "rules"}, Ledger(), {})) and len(watcher.seen) == len(replies)
