"""Writes the decisions of `agents/choice.py` as events."""

from __future__ import annotations

from rlgpt.agents.choice import undecided
from rlgpt.store.writer import Writer


def write_decisions(writer: Writer) -> None:
    """Before the loop is asked for the next step, and after a command of the operator.

    Only what the rows do not say yet is written, so a resumed session or a fork writes nothing twice, and one that was
    killed before this writes it then.
    """
    decisions = undecided(writer.history)
    if not decisions:
        return
    with writer.transaction(durable=True) as tx:
        for decision in decisions:
            tx.event(decision)
