"""A whole short session on every server that speaks Chat Completions in its own way."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.agents.dialects import DIALECTS, serve
from tests.end_to_end.conftest import Make

QUICK = ("vllm", "llama-cpp-python", "responses")
"""Those that refuse most; the others take the same way and are slow proofs."""
LASTING = ("rejected", "suspected", "tokens")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in DIALECTS]
)
def test_a_session_ends_well_and_no_refused_request_is_sent_again(make: Make, name: str) -> None:
    with serve(name) as server:
        llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules", "patience": 0.0}
        loop = {"iterations": 0, "dev_first": 2, "test_episodes": 2}
        session = make("make_wood_pickaxe", llm=llm, loop=loop)
        history = session.finish(300)
        sent = [json.dumps(request, sort_keys=True) for request in server.requests]
    assert history.result in ("finished", "succeeded"), history.reason
    assert any(attempt.trial and attempt.trial.outcome == "accepted" for attempt in history.attempts)
    calls = session.rows("llm_call")
    lasting = [row["error"] for row in calls if row["state"] == "failed" and row["error"].startswith(LASTING)]
    assert len(lasting) == len(set(lasting)), "a refusal was asked for twice"
    passing = len([row for row in calls if row["state"] == "failed"]) - len(lasting)
    assert sum(times - 1 for times in Counter(sent).values()) <= passing
    assert len([row for row in calls if row["state"] == "sent"]) == len(sent)
