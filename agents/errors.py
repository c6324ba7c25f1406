"""Errors between the loop and a model. Each carries one sentence for the operator."""

from __future__ import annotations

from pydantic import BaseModel


class AgentError(Exception):
    """An agent cannot answer; the argument is the sentence."""


class MissingKey(AgentError):
    """No API key in the environment for an endpoint that needs one, or none that can be sent."""


class Unclear(AgentError):
    """Settings of a language model that do not say enough."""


class UnusableFields(AgentError):
    """Fields of the operator's that no RL configuration can have."""


class BudgetReached(AgentError):
    """What a call may cost does not fit what is left of a budget: raised by the journal before it is sent."""


class ModelUnavailable(AgentError):
    """The endpoint refused the request, or gave no answer after every try."""


class UselessReply(AgentError):
    """The model answered, but not even after a repair turn with anything that can be used."""

    def __init__(self, sentence: str, nearest: BaseModel | None = None) -> None:
        """`nearest`: the last answer that fitted its contract and was of no use all the same."""
        super().__init__(sentence)
        self.nearest = nearest


class NotRecorded(AgentError):
    """A replayed session asks what the recorded one never asked."""
