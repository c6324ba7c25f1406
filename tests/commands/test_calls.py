"""`rlgpt calls`: what was asked of a language model, what it said, and what it took, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlgpt.agents.client import make_client
from rlgpt.agents.contracts import CodeReply
from rlgpt.agents.errors import UselessReply
from rlgpt.agents.probes import Look, Probe, Tool
from rlgpt.console.feed import Feed
from rlgpt.console.view.logs import call_entries, log_entries
from rlgpt.console.view.text import plain
from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import LlmCallRow
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer
from rlgpt.training.session.llm_journal import StoreJournal
from tests.agents.asker import ASKED, CODE, settings
from tests.agents.chat_server import ChatServer, completion, rate_limited
from tests.agents.tool_models import call, calling, turns

from .conftest import Answer, make

Cli = Callable[..., Answer]
USED = {
    "prompt_tokens": 1200,
    "completion_tokens": 340,
    "total_tokens": 1540,
    "prompt_tokens_details": {"cached_tokens": 1024},
    "completion_tokens_details": {"reasoning_tokens": 300},
}


@pytest.fixture
def asked() -> SessionFolder:
    """A session that asked twice: once through a rate limit, once for nothing of use."""
    answer = json.loads(completion(CODE).body) | {"usage": USED}
    answer["choices"][0]["message"]["reasoning_content"] = "Dig \x1b[31mdown."
    session = make()
    with (
        ChatServer(lambda request: answer, [rate_limited()]) as server,
        Writer(session) as writer,
        Reader(session) as reader,
    ):
        journal = StoreJournal(writer, reader, Settings(task="collect_wood"))
        llm = settings(server.url, price_in=1.0, price_cached=0.1, price_out=10.0)
        client = make_client(llm, journal, {}, sleep=lambda s: None)
        client.ask("fast", "write/0.0/dig/1", ASKED, CodeReply)
        with pytest.raises(UselessReply):
            client.ask("fast", "write/0.0/dig/2", ASKED, CodeReply, lambda reply: "no")
    return session


def test_every_exchange_is_a_line_with_tries_tokens_cost_and_latency(rlgpt: Cli, asked: SessionFolder) -> None:
    shown = rlgpt("calls", asked.id)
    lines = shown.out.splitlines()
    assert shown.code == 0 and lines[0].split()[:3] == ["no", "at", "role"]
    assert "failed" in lines[1] and "answered" in lines[2] and "of no use" in lines[3]
    assert all(word in lines[2] for word in ("fast agent", "writes v1 of dig", "1,200", "1,024", "340", "300"))
    assert "1: 429: " in shown.out


def test_json_holds_prompt_and_reply(rlgpt: Cli, asked: SessionFolder) -> None:
    first, second, *_ = rlgpt("calls", asked.id, "--json").document["calls"]
    assert (first["state"], first["try"], first["reply"]) == ("failed", 1, None)
    assert (second["state"], second["try"]) == ("answered", 2)
    assert second["prompt"]["messages"] == ASKED and second["reply"]["content"] == CODE
    assert (second["tokens_in"], second["tokens_cached"], second["tokens_out"]) == (1200, 1024, 340)
    assert second["tokens_thought"] == 300
    assert second["usd"] == pytest.approx((176 * 1.0 + 1024 * 0.1 + 340 * 10.0) / 1e6)


def test_one_exchange_is_shown_whole_and_harmless(rlgpt: Cli, asked: SessionFolder) -> None:
    shown = rlgpt("calls", asked.id, 2)
    assert "You write code." in shown.out and "def dig(view):" in shown.out and "down." in shown.out
    assert "\x1b" not in shown.out
    missing = rlgpt("calls", asked.id, 99)
    assert missing.code == 3 and "has 6 exchanges" in missing.err


def test_a_session_that_asked_nothing_says_so(rlgpt: Cli, tmp_path: Path) -> None:
    assert "no language model was asked yet" in rlgpt("calls", make().id).out


def test_calls_at_a_row_are_those_that_had_been_made(rlgpt: Cli, asked: SessionFolder) -> None:
    with Reader(asked) as reader:
        sent, failed = (row["seq"] for row in reader.rows(LlmCallRow)[:2])
    shown = [rlgpt("calls", asked.id, "--at", row, "--json").document["calls"] for row in (sent, failed)]
    assert [[call["state"] for call in calls] for calls in shown] == [["sent"], ["failed"]]
    assert "up to row 1" in rlgpt("calls", asked.id, "--at", 1).out
    refused = rlgpt("calls", asked.id, 2, "--at", sent)
    assert refused.code == 3 and "at row" in refused.err


def test_what_a_model_tried_is_told_with_its_call_here_in_the_pane_and_in_the_log(rlgpt: Cli) -> None:
    def answer(request: Any) -> Any:
        looks = [call("look", {"seed": 0, "step": 0}), call("fly", {}, "b", 1)]
        return json.loads(completion(CODE).body) if turns(request) else calling(looks)

    look = Tool("look", "Look.", Look, lambda arguments: Probe("where it \x1b[31mbegins\n..T..", 17))
    session = make()
    with ChatServer(answer) as server, Writer(session) as writer, Reader(session) as reader:
        journal = StoreJournal(writer, reader, Settings(task="collect_wood"))
        client = make_client(settings(server.url, probes=3), journal, {}, sleep=lambda s: None)
        client.ask("fast", "write/0.0/dig/1", ASKED, CodeReply, tools=[look])
        assert (writer.history.spent.env_steps, writer.history.probes) == (17, {"write/0.0/dig/1": 2})
    shown = rlgpt("calls", session.id).out
    assert "1: tries look: where it" in shown and "1: tries fly: there is no tool 'fly'" in shown
    whole = rlgpt("calls", session.id, "1").out
    assert "---- look, 17 env steps ----" in whole and "..T.." in whole and "\x1b" not in shown + whole
    first, second = rlgpt("calls", session.id, "--json").document["calls"]
    assert [(probe["tool"], probe["env_steps"]) for probe in first["probes"]] == [("look", 17), ("fly", 0)]
    assert not second["probes"]
    feed = Feed(session.path)
    feed.open()
    m = feed.moment()
    (entry,) = [e for e in call_entries(m, 100, frozenset()) if e.key.startswith("call:") and len(e.lines) > 1]
    assert "tries look: where it" in plain(entry.lines[1])
    opened = [plain(x) for e in call_entries(m, 100, frozenset({entry.key})) for x in e.lines]
    assert any("..T.." in text for text in opened)
    assert any("writes v1 of dig tries look" in e.search for e in log_entries(m, 100))
