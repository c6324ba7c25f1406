"""Who answers a session, and how many calls an iteration makes of its language model, from the constants of the loop
(`agents/loop.py`)."""

from __future__ import annotations

from collections.abc import Iterable

RULE_BASED = "rlgpt-rules"
"""What a row of a call names the rule-based model (`agents/endpoint.py`)."""
LARGEST_PLAN = 24
"""Sub-actions of a plan at most: `plan_edits.MOST_ITEMS`, without the import of pydantic that comes with it."""
USUAL_PLAN = 6
"""Coded sub-actions of a plan, as an estimate takes them."""
TOKENS_PER_CALL = (4_000, 700)
"""Prompt and reply, where no session says better."""


def is_rule_based(kind: str, models: Iterable[str]) -> bool:
    """Whether the rule-based model alone answers in a session whose setting `llm.kind` this is. `models`: as its rows
    of calls name them. A replay's name who once gave the answers, even where the session it repeats is gone; one
    without a call so far is told nothing of."""
    return kind == "rules" or (kind.startswith("replay:") and set(models) == {RULE_BASED})


def usual_calls(inner: int, critic: str = "model", candidates: int = 1) -> int:
    """A plan without a refinement, and half of the attempts at each sub-action, rounded up."""
    return sum(usual_by_role(inner, critic, candidates).values())


def usual_by_role(inner: int, critic: str = "model", candidates: int = 1) -> dict[str, int]:
    """`usual_calls` by who is asked."""
    attempts = USUAL_PLAN * -(-inner // 2)
    judged = attempts * int(critic == "model") + int(critic != "human")
    return {"slow": 1, "fast": attempts * candidates + 1, "critic": judged}


def most_calls(inner: int, depth: int, critic: str = "model", largest: int = LARGEST_PLAN, candidates: int = 1) -> int:
    """Every refinement brings a plan of `largest` new sub-actions, and every attempt at each of them fails.

    Calls that are made again because the server failed, and what an operator's overrides ask for, come on top.
    """
    return _calls(1 + depth, largest * (1 + depth), inner, critic, candidates)


def _calls(plans: int, items: int, attempts: int, critic: str, candidates: int) -> int:
    """Plans; the drafts of an attempt, of which one is judged; the RL configuration; the verdict on the iteration."""
    judged = int(critic == "model")
    return plans + items * attempts * (candidates + judged) + 1 + int(critic != "human")
