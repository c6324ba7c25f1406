"""`respond`: a Chat Completions request in, a Chat Completions response out, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from rlgpt.agents.journal import canonical, text_hash
from rlgpt.agents.rules import coding, judging, planning
from rlgpt.agents.rules.question import NotUnderstood, Question, read

ANSWERS: Mapping[str, Callable[[Question], BaseModel]] = {
    "order": planning.order,
    "plan": planning.plan,
    "refine": planning.refine,
    "write": coding.write,
    "configure": coding.configure,
    "judge_item": judging.judge_item,
    "judge_iteration": judging.judge_iteration,
}


def respond(request: Mapping[str, Any]) -> dict[str, Any]:
    """The same bytes always get the same answer. What it does not understand it refuses, as a model would."""
    content, refusal = "", None
    try:
        question = read(request)
        if question.ask not in ANSWERS:
            raise NotUnderstood(f"it asks {question.ask!r}")
        content = ANSWERS[question.ask](question).model_dump_json()
    except (NotUnderstood, KeyError, TypeError, ValueError) as error:
        refusal = f"The rule-based model answers only rlgpt's own questions: {error}"
    except Exception as error:  # a world sheet of another form
        refusal = f"The rule-based model cannot read the question: {type(error).__name__}: {error}"
    message = {"role": "assistant", "content": None if refusal else content, "refusal": refusal}
    return {
        "id": f"rules-{text_hash(canonical(request))[:16]}",
        "object": "chat.completion",
        "created": 0,
        "model": str(request.get("model", "")),
        "choices": [{"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }
