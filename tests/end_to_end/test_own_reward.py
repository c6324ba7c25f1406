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


class Mistaken(Rewarding):
    """Its first configurations follow the schema and name only what exists, and PPO cannot be started with them."""

    def __init__(self, *changes: dict[str, Any]) -> None:
        super().__init__()
        self.changes = list(changes)
        self.faults: list[str] = []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = respond(request)
        if question.read(request).ask == "configure":
            message = answer["choices"][0]["message"]
            message["content"] = json.dumps(
                json.loads(message["content"]) | (self.changes.pop(0) if self.changes else {})
            )
            self.faults.append(str(request["messages"][-1]["content"]))
        return answer


OWN = {"term": "generated", "argument": "", "weight": 0.25}


def test_a_configuration_that_ppo_cannot_be_started_with_costs_a_request_and_no_training(make: Make) -> None:
    branches = {"decisions": 256, "repeats": 32, "env_steps": 1000}
    model = Mistaken({"target": "make_bread"}, {"reward": [OWN, OWN], "reward_source": HEALTHY}, {"branches": branches})
    with ChatServer(model) as server:
        llm = {"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"}
        session = make(
            "collect_wood", llm=llm, method={"arm": "rl"}, loop={"iterations": 0}, budget={"env_steps": 2048}
        )
        history = session.finish(150)
    assert history.status == "ended" and len(model.faults) == 4, history.reason
    assert "no milestone 'make_bread' to train for; it has: collect_wood" in model.faults[1]
    assert "at most one generated reward" in model.faults[2]
    assert "may take 16384000 env steps" in model.faults[3] and "quarter of the training's 2048" in model.faults[3]
    assert [run.state for run in history.runs.values()] == ["finished"]


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
