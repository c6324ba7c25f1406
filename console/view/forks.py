"""The sessions of a store as trees: each fork below the session that it goes on from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rlgpt.console.view.arms import arm_of, differing, with_defaults

if TYPE_CHECKING:
    from rlgpt.store.catalog import Summary


class Branch(NamedTuple):
    summary: Summary
    depth: int
    stem: str
    """What is drawn before its name: the lines that lead here from its parent."""
    changed: str
    """Settings in which a fork differs from its parent; empty for none, or where the parent is gone or unreadable."""


def branches(summaries: Sequence[Summary]) -> list[Branch]:
    """Each tree from its root down, the oldest first. A fork whose parent is gone is a root."""
    by_id = {s.id: s for s in summaries}
    below: dict[str | None, list[Summary]] = {}
    by_age = sorted(summaries, key=lambda s: (s.started_at, s.id))
    for s in by_age:
        below.setdefault(s.parent_id if s.parent_id in by_id else None, []).append(s)
    out: list[Branch] = []
    shown: set[str] = set()
    for root in [*below.get(None, []), *by_age]:  # a circle of parents, as a forged store may have, has no root
        waiting = [(root, 0, "", "")]
        while waiting:
            s, depth, stem, rest = waiting.pop()
            if s.id in shown:
                continue
            shown.add(s.id)
            out.append(Branch(s, depth, stem, _changed(s, by_id.get(s.parent_id or ""))))
            forks = below.get(s.id, [])
            for index, fork in reversed(list(enumerate(forks))):
                last = index == len(forks) - 1
                waiting.append((fork, depth + 1, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  ")))
    return out


def _changed(s: Summary, parent: Summary | None) -> str:
    if parent is None or parent.fault:
        return ""
    before, now = with_defaults(parent.settings), with_defaults(s.settings)
    keys = differing([before, now])
    return arm_of(now, keys) if keys else ""


def place(branch: Branch) -> str:
    """Where a fork left its parent, in words; empty for a session that is none."""
    s = branch.summary
    if s.parent_id is None:
        return ""
    gone = "" if branch.depth else f" of {s.parent_id}, which is not here"
    return f"from row {s.parent_seq}{gone}" + (f": {branch.changed}" if branch.changed else "")
