"""Budgets: env steps, active time, tokens and cost. Reaching one ends the session cleanly, with a sentence."""

from __future__ import annotations

from rlgpt.store.history import History
from rlgpt.store.settings import Budget
from rlgpt.training.session.runtime import SessionRuntime


def limit(history: History, budget: Budget, name: str) -> float | None:
    """The budget as the operator last set it."""
    value = history.budgets.get(name, getattr(budget, name))
    return None if value is None else float(value)


def over_budget(runtime: SessionRuntime) -> str:
    """The sentence of the first budget that is used up, empty while none is."""
    history, budget = runtime.history, runtime.settings.budget
    used = {
        "env_steps": float(history.spent.env_steps),
        "tokens": float(history.spent.tokens),
        "hours": runtime.writer.clock.read() / 3600,
    }
    for name, spent in used.items():
        most = limit(history, budget, name)
        if most is not None and spent >= most:
            limit_words = f"{most:g}" if name == "hours" else f"{most:.0f}"
            return f"the budget of {limit_words} {name.replace('_', ' ')} is used up"
    most = limit(history, budget, "cost")
    spent_cost = history.spent.cost
    if most is not None and spent_cost >= most and spent_cost > 0:  # with 0 what is free goes on
        return f"the budget of {most:g} USD for language models is used up"
    return ""
