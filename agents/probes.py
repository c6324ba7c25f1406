"""What a model may try before it answers: tools of its request, whose results come back in words.

Function calling is only the way in. What was called and what came of it is added to the question, so nothing goes back
in the roles `assistant` and `tool`: not the ids, of which Mistral takes only such of nine characters
(https://github.com/anomalyco/opencode/issues/1680), not the thoughts that DeepSeek wants
(https://github.com/continuedev/continue/issues/10193) nor their signatures, which Gemini does
(https://github.com/securo-finance/securo/issues/884), and no arguments that are no JSON. A server that refuses tools in
the middle is asked on without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from rlgpt import prompts
from rlgpt.agents.completions import Completion, ToolCall
from rlgpt.agents.contracts import LONGEST_SOURCE, Source
from rlgpt.agents.dialect import Message
from rlgpt.agents.parsing import parse
from rlgpt.agents.schema import strict_schema
from rlgpt.store.history import Item
from rlgpt.store.row_types import JsonObject

LONGEST_CALL = 20_000
"""Characters of arguments."""


@dataclass(frozen=True)
class Probe:
    """What came of one call: the first line sums it up."""

    told: str
    env_steps: int = 0


class Prober(Protocol):
    """Where the fast agent's probes are run (training/steps/probing.py)."""

    def try_action(self, item: Item, source: str) -> Probe:
        """Some episodes with this source as the sub-action's code."""

    def look(self, item: Item, seed: int, step: int) -> Probe:
        """Where the sub-action begins in one of these episodes."""


class Arguments(BaseModel):
    """What else a model writes beside them is passed over."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class TryAction(Arguments):
    source: Source = Field(max_length=LONGEST_SOURCE)
    """The whole source, as in the answer."""


class Look(Arguments):
    seed: int = Field(ge=0, le=999)
    """0, 1 and 2 are the episodes of `try_action`."""
    step: int = Field(ge=0, le=1000)
    """Env steps of doing nothing before the look; 0 for the beginning."""


@dataclass(frozen=True)
class Tool:
    name: str
    doc: str
    arguments: type[Arguments]
    run: Callable[[Any], Probe]
    """Takes what `arguments` says."""

    @property
    def spec(self) -> JsonObject:
        """As a request has it."""
        function = {"name": self.name, "description": self.doc, "parameters": strict_schema(self.arguments)}
        return {"type": "function", "function": function}


def call_tool(tools: Sequence[Tool], call: ToolCall) -> Probe:
    """Whatever the model wrote."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        names = ", ".join(tool.name for tool in tools)
        return Probe(f"there is no tool {call.name[:60]!r}; there are: {names}")
    arguments, fault = parse(call.arguments, tool.arguments)
    return tool.run(arguments) if arguments is not None else Probe(f"the arguments cannot be used: {fault}")


def with_results(question: Message, completion: Completion, probes: Sequence[Probe], left: int) -> Message:
    """The question, and what the model called since. `probes`: of its first calls, the others were not run."""
    calls = completion.calls[: len(probes)]
    results = prompts.render(
        "probed",
        said=completion.content.strip()[:LONGEST_CALL],
        calls=[_shown(call) | {"result": probe.told} for call, probe in zip(calls, probes, strict=True)],
        skipped=len(completion.calls) - len(calls),
        left=left,
    )
    return {**question, "content": f"{question['content']}\n\n{results}"}


def _shown(call: ToolCall) -> dict[str, str]:
    source, _ = parse(call.arguments, TryAction)
    return {"name": call.name[:60], "arguments": (source.source if source else call.arguments)[:LONGEST_CALL]}
