"""What can go wrong between the loop and a model. Each carries one sentence for the operator."""

from __future__ import annotations


class AgentFailure(Exception):
    """An agent cannot answer; the argument is the sentence."""


class MissingKey(AgentFailure):
    """No API key in the environment for an endpoint that needs one."""


class ModelUnavailable(AgentFailure):
    """The endpoint refused the request, or gave no answer after every try."""


class UselessReply(AgentFailure):
    """The model answered, but not even after a repair turn with anything that can be used."""


class NotRecorded(AgentFailure):
    """A replayed session asks what the recorded one never asked."""
