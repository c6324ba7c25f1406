"""The sessions that a command looks at all at once: those here, and those of the team's store."""

from __future__ import annotations

from rlgpt.console.commands import output
from rlgpt.store.catalog import Summary
from rlgpt.store.reach import everywhere

PATIENCE = 12.0
"""Seconds to wait for the team's store: a little longer than a connection may take."""


def listed() -> list[Summary]:
    """Newest first. Where the store does not answer that is noted. Raises BadPlace."""
    summaries, fault = everywhere(PATIENCE)
    if fault:
        output.note(fault)
    return summaries
