"""A server that fails in every way on the way: the session completes, and each failure is a row."""

from __future__ import annotations

from pathlib import Path

from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from tests.agents.chat_server import ChatServer
from tests.end_to_end.typed import rlgpt

FAULTS = ("429", "timeout", "ok", "malformed", "ok", "truncated", "ok", "refusal", "ok", "rejected")
SMALL = {"RLGPT_LLM__TIMEOUT": "6", "RLGPT_LOOP__DEV_FIRST": "2", "RLGPT_LOOP__TEST_EPISODES": "2"}
RUN = ("run", "make_wood_pickaxe", "--llm", "openai", "--model", "rlgpt-rules", "--iterations", "0", "--headless")


def test_a_session_on_a_server_that_fails_in_every_way_completes_and_tells_each_failure(tmp_path: Path) -> None:
    with ChatServer(script=FAULTS) as server:
        said = rlgpt(tmp_path / "home", *RUN, "--base-url", server.url, timeout=200, **SMALL)
    assert said.code == 0, said.out + said.err
    (folder,) = (tmp_path / "home" / "sessions").iterdir()
    with Reader(SessionFolder(folder)) as reader:
        calls = reader.rows("llm_call")
        errors = [row["error"] for row in calls if row["error"]]
        replies = [reader.text(row["reply_hash"]) for row in calls if row["state"] == "answered" and row["error"]]
    kinds = [error.partition(":")[0] for error in errors]
    assert kinds == ["429", "timeout", "malformed JSON", "truncated", "refusal", "rejected temperature"]
    assert len(replies) == 3 and "I cannot help with that." in replies[2]
    assert len([row for row in calls if row["state"] == "sent"]) == len(server.requests)
