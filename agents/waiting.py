"""How long a server that is away is waited for, and what the operator is told when it is not any more."""

from __future__ import annotations

import tenacity

from rlgpt.agents.refusals import Failure

TRIES = 6
"""Of a question that the session can do without, before it does."""
MOST_WAIT = 300.0
"""Seconds between two tries, also when the server asks for more."""
_backoff = tenacity.wait_exponential_jitter(initial=1.0, max=MOST_WAIT, jitter=1.0)


def seconds_to_wait(state: tenacity.RetryCallState) -> float:
    """As long as the server asks for, but never shorter than without its word: tries are counted, so a server that says
    "in a second" through an hour of being away would use them all up."""
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Failure):
        return _backoff(state)
    if error.recorded:
        return 0.0
    return min(max(error.retry_after or 0.0, _backoff(state)), MOST_WAIT)


def tries_in(seconds: float) -> int:
    """How many tries fit into so much waiting. Counted and not timed, so that a replay gives up where its original
    did; at least TRIES."""
    tries, waited, step = 1, 0.0, 1.0
    while tries < TRIES or waited + step <= seconds:
        waited, step, tries = waited + step, min(2 * step, MOST_WAIT), tries + 1
    return tries


def unanswered(role: str, failure: Failure, tries: int) -> str:
    """The operator's sentence for a question that is given up."""
    after = f" after {tries} tries" if failure.transient else ""
    cure = ""
    if failure.code in ("401", "403"):
        cure = " Check the key in the environment, --key-env, and that the key may use this model."
    elif failure.code == "404":
        cure = " Check --base-url and --model."
    elif failure.code.isdigit() and int(failure.code) // 100 == 3:
        cure = " Give the address that answers as --base-url."
    elif failure.code == "connection":
        cure = " Check --base-url and that the server runs."
    elif failure.code.startswith("tokens"):
        cure = " Serve the model with a longer context, or take another model."
    return f"The {role} agent got no answer{after}: {failure.sentence}.{cure}"
