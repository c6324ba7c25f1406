"""Every question of a session gets its answer from every server that speaks Chat Completions in its own way."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rlgpt.agents.client import make_client
from rlgpt.agents.endpoint import RULES_MODEL
from rlgpt.agents.journal import canonical
from rlgpt.agents.responses import in_responses
from tests.agents.asker import chain, settings
from tests.agents.dialects import DIALECTS, serve
from tests.agents.toys import Ledger

REFUSED = {
    "openai": [],
    "vllm": ["tokens context=16000", "rejected response_format"],
    "llamacpp": ["503", "rejected response_format"],
    "llama-cpp-python": ["rejected response_format", "tokens context=16000"],
    "ollama": [],
    "lmstudio": ["rejected response_format", "rejected response_format"],
    "tgi": ["rejected response_format", "rejected response_format", "tokens context=16000"],
    "mistral": ["rejected stream_options"],
    "deepseek": ["rejected response_format", "tokens output=8192"],
    "anthropic": ["tokens output=8192", "wrong schema"],
    "gemini": ["rejected response_format"],
    "openrouter": ["502", "502"],
    "azure": ["rejected max_tokens", "rejected response_format"],
    "o-series": ["rejected max_tokens", "rejected temperature", "rejected stream"],
    "responses": ["rejected chat", "rejected temperature"],
}
"""What each teaches, in order; nothing more than once."""


@pytest.mark.parametrize("name", DIALECTS)
def test_a_whole_chain_of_questions_is_answered_in_every_dialect(name: str) -> None:
    ledger = Ledger()
    with serve(name) as server:
        client = make_client(settings(server.url, model=RULES_MODEL), ledger, {}, sleep=lambda s: None)
        replies = chain(client)
        sent = [canonical(request) for request in server.requests]
    assert replies == chain(make_client({"kind": "rules"}, Ledger(), {}))
    learnt = [end.partition(":")[0] for end in ledger.ends if end]
    assert [word.partition(" prompt")[0] for word in learnt] == REFUSED[name]
    again = [request for request, times in Counter(sent).items() if times > 1]
    assert len(again) <= len([word for word in REFUSED[name] if word.isdigit()]), "a refused request was sent again"


@pytest.mark.parametrize("name", ["vllm", "tgi", "o-series", "responses"])
def test_what_a_dialect_taught_is_known_after_a_restart(name: str) -> None:
    ledger = Ledger()
    with serve(name) as server:
        llm = settings(server.url, model=RULES_MODEL)
        chain(make_client(llm, ledger, {}, sleep=lambda s: None))
        ended = len(ledger.ends)
        ledger.replies.clear()
        chain(make_client(llm, ledger, {}, sleep=lambda s: None))
    assert not any(ledger.ends[ended:])


def test_the_operators_words_for_the_responses_api_go_beside_what_is_asked_for() -> None:
    extra: dict[str, Any] = {"text": {"verbosity": "low"}, "reasoning": {"summary": "auto"}}
    assert in_responses({"text": 1, "model": "m", "messages": [], "response_format": {"type": "text"}})["text"] == {
        "format": {"type": "text"}
    }
    with serve("responses") as server:
        chain(make_client(settings(server.url, model=RULES_MODEL, extra=extra), Ledger(), {}, sleep=lambda s: None))
        asked = [request for request in server.requests if "input" in request]
    assert asked and all(request["text"].keys() == {"verbosity", "format"} for request in asked)
    assert all(request["reasoning"]["summary"] == "auto" for request in asked)
