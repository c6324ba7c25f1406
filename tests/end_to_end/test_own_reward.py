"""A reward function that the fast agent writes: admitted like all generated code, and trained with."""

from __future__ import annotations

import json
from typing import Any

from rlgpt.agents.rules import question
from rlgpt.agents.rules.model import respond
from rlgpt.store.reader import Reader
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Make

FORBIDDEN = "import os\ndef reward(before, view):\n    return 1.0\n"
HEALTHY = "def reward(before, view):\n    return 0.5 if view.health >= before.health else -1.0\n"


class Rewarding:
    """The rule-based model, but for its configurations: they bring the next of these reward functions."""

    def __init__(self, *sources: str) -> None:
        self.sources = list(sources)
        self.refusals: list[str] = []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = respond(request)
        asked = question.read(request)
        if asked.ask == "configure":
            message = answer["choices"][0]["message"]
            config = json.loads(message["content"])
            config["reward"].append({"term": "generated", "argument": "", "weight": 0.25})
            config["reward_source"] = self.sources.pop(0)
            message["content"] = json.dumps(config)
            self.refusals.append(next((m for m in str(request["messages"]).split("refused:")[1:]), ""))
        return answer


def test_an_agents_own_reward_is_admitted_trained_with_and_asked_for_again_when_refused(make: Make) -> None:
    model = Rewarding(FORBIDDEN, HEALTHY)
    with ChatServer(model) as server:
        llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}
        method = {"arm": "rl"}
        session = make("collect_wood", llm=llm, method=method, loop={"iterations": 0}, budget={"env_steps": 2048})
        history = session.finish(150)
    assert history.status == "ended" and not model.sources, history.reason
    assert not model.refusals[0] and "import" in model.refusals[1]
    with Reader(session.folder) as reader:
        (config,) = reader.rows("rl_config")
        (term,) = [term for term in config["config"]["reward"] if term["term"] == "generated"]
        assert reader.text(term["argument"]) == HEALTHY and "reward_source" not in config["config"]
        paid = [row["rewards"]["generated"] for row in reader.rows("metric")]
    assert any(paid), "the reward was never paid"
