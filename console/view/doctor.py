"""Summarises the findings of `doctor` in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlgpt.console.view.numbers import many


def conclusion(findings: Sequence[Mapping[str, Any]]) -> str:
    lacking = [str(f["item"]) for f in findings if not f["ok"] and not f["optional"]]
    optional = sum(not f["ok"] and bool(f["optional"]) for f in findings)
    more = f"; {many(optional, 'optional thing')} not available" if optional else ""
    if lacking:
        return f"needed and missing: {', '.join(lacking)}{more}"
    return f"everything that sessions need is here{more}"
