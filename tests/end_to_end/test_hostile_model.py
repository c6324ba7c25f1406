"""A model whose code is hostile or broken throughout: the session ends cleanly, and every refusal can be read."""

from __future__ import annotations

import itertools
import json
from typing import Any

from rlgpt.agents.rules.model import respond
from tests.agents.chat_server import ChatServer
from tests.end_to_end.conftest import Make

NAMES = ("collect_wood", "place_table", "make_wood_pickaxe")
HOSTILE = (
    "import os\ndef {name}(view):\n    yield os.environ",
    "def {name}(view):\n    yield ().__class__.__bases__[0].__subclasses__()",
    "def {name}(view):\n    yield open('/etc/passwd').read()",
    "def {name}(view):\n    while True:\n        pass\n    yield 'noop'",
    "def {name}(view):\n    yield 'x' * 10 ** 9",
    "def {name}(view:\n    yield",
    "def {name}(view):\n    try:\n        yield 'noop'\n    finally:\n        yield 'noop'",
    "def {name}(view):\n    yield 99",
    "def {name}(view):\n    raise ValueError('\\x1b]0;owned\\x07')\n    yield 'noop'",
    "def {name}(view):\n    yield 'noop'",
)


class Hostile:
    """The rule-based model, but for the code it writes."""

    def __init__(self) -> None:
        self._snippets = itertools.cycle(HOSTILE)

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = respond(request)
        message = answer["choices"][0]["message"]
        content = json.loads(message["content"]) if message["content"] else {}
        if "source" in content:
            name = next(
                (n for n in NAMES if f'"{n}"' in json.dumps(request)[-4000:] or n in content["source"]), NAMES[0]
            )
            message["content"] = json.dumps(content | {"source": next(self._snippets).format(name=name)})
        return answer


def test_a_hostile_model_cannot_do_more_than_fail(make: Make) -> None:
    with ChatServer(Hostile()) as server:
        session = make(
            "make_wood_pickaxe",
            llm={"kind": "openai", "base_url": server.url, "model": "rlgpt-rules"},
            loop={"iterations": 0, "test_episodes": 2},
            budget={"env_steps": 8_000},
        )
        history = session.finish(250)
        shown = json.dumps(server.requests)
    assert history.status == "ended" and history.result in ("finished", "succeeded"), history.reason
    refused = [row for row in session.rows("code_version") if not row["admitted"]]
    assert len(refused) >= 3
    for row in refused:
        assert row["admission"]["rule"] and row["admission"]["message"]
    repaired = [row for row in refused if row["attempt"] < 3]
    assert repaired and all(row["admission"]["rule"] in shown for row in repaired)
    assert not any(a.trial and a.trial.outcome == "accepted" for a in history.attempts)
    assert not session.processes()
