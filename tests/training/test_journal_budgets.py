"""What the operator is told where a call does not fit a budget."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.agents.errors import BudgetReached
from rlgpt.agents.journal import Call
from rlgpt.store.settings import Settings
from rlgpt.training.session import llm_journal
from rlgpt.training.session.llm_journal import StoreJournal


def journal(spent: float, kind: str = "openai", **budget: Any) -> StoreJournal:
    """Of a session that has spent so many tokens, or USD."""
    settings = Settings.model_validate(
        {"task": "t", "llm": {"kind": kind, "model": "m"} if kind == "openai" else {"kind": kind}, "budget": budget}
    )
    history = SimpleNamespace(budgets={}, spent=SimpleNamespace(tokens=spent, cost=spent))
    return StoreJournal(SimpleNamespace(history=history), None, settings)  # type: ignore[arg-type]


def call(tokens: int, cost: float | None) -> Call:
    return Call("id", "s", "fast", "m", "{}", "hash", 1, cost, tokens)


@pytest.mark.parametrize(
    ("spent", "asked", "sentence"),
    [
        (2_026_740, 0, "the budget of 2,000,000 tokens is used up: 2,026,740 are spent"),
        (2_000_000, 9, "the budget of 2,000,000 tokens is used up: 2,000,000 are spent, and the next call may take 9"),
        (1_999_995, 9, "the budget of 2,000,000 tokens leaves 5, and the next call may take 9"),
    ],
)
def test_a_call_that_takes_nothing_is_not_told_as_one_that_may_take_0(spent: int, asked: int, sentence: str) -> None:
    with pytest.raises(BudgetReached) as reached:
        journal(spent, tokens=2_000_000).reserve(call(asked, None))
    assert str(reached.value) == sentence


def test_the_same_of_a_budget_in_usd() -> None:
    with pytest.raises(BudgetReached) as reached:
        journal(0.6, cost=0.5).reserve(call(0, 0.0))
    assert str(reached.value) == "the budget of 0.5 USD is used up: 0.6000 are spent"


def test_a_replay_pays_nothing_so_the_daily_budget_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_journal, "spent_today", lambda: 100.0)
    with pytest.raises(BudgetReached, match="today's budget"):
        journal(0, daily_cost=1.0).reserve(call(9, 0.5))
    journal(0, "replay:some", daily_cost=1.0).reserve(call(9, 0.5))
