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


def call(tokens: int, cost: float | None, cost_told: bool = False) -> Call:
    return Call("id", "s", "fast", "m", "{}", "hash", 1, cost, tokens, cost_told)


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


def test_a_server_that_tells_the_cost_with_its_answer_is_asked_no_more_once_a_budget_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, silent = call(9, None, cost_told=True), call(9, None)
    monkeypatch.setattr(llm_journal, "spent_today", lambda: 0.0)
    journal(1.9, cost=2.0).reserve(told)
    journal(0.0, cost=0.0).reserve(told)
    for spent, most in ((2.0, 2.0), (7.5, 2.0), (0.1, 0.0)):
        with pytest.raises(BudgetReached, match=f"the budget of {most:g} USD is used up"):
            journal(spent, cost=most).reserve(told)
        journal(spent, cost=most).reserve(silent)
    monkeypatch.setattr(llm_journal, "spent_today", lambda: 20.0)
    with pytest.raises(BudgetReached, match="today's budget of 20 USD"):
        journal(0.0, daily_cost=20.0).reserve(told)
    journal(0.0, daily_cost=20.0).reserve(silent)
