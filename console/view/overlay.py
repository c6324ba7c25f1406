"""What can be drawn over a session's curves: its own iterations, and the other sessions of the store. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlgpt.console.view.curves import Overlay
from rlgpt.console.view.numbers import count
from rlgpt.console.view.sessions import model_words

if TYPE_CHECKING:
    from rlgpt.console.view.moment import Moment
    from rlgpt.store.catalog import Summary

NONE = "none"


def offers(m: Moment, summaries: Sequence[Summary]) -> list[tuple[str, str, str]]:
    """(key, name, what it is): nothing, the iterations with a PPO run but for the newest, then sessions, those of the
    same task first."""
    h = m.history
    with_runs = [i for i in h.iterations if i.runs]
    own = [
        (f"iteration:{i.sub_task}:{i.number}", _name(m, i.sub_task, i.number),
         f"its PPO, {count(sum(h.runs[r].env_steps for r in i.runs))} env steps, moved to where the newest begins")
        for i in with_runs[:-1]
    ]  # fmt: skip
    others = [s for s in summaries if s.id != h.session.get("session_id") and not s.fault and s.env_steps]
    others.sort(key=lambda s: (s.task != h.session.get("task"), -s.started_at))
    offered = [(s.id, s.name, f"{s.task}, {model_words(s.model)}, {count(s.env_steps)} env steps") for s in others]
    return [(NONE, "nothing", ""), *own, *offered]


def _name(m: Moment, sub_task: int, number: int) -> str:
    parts = len({i.sub_task for i in m.history.iterations})
    return f"iteration {number}" + (f" of part {sub_task + 1}" if parts > 1 else "")


def of_iteration(m: Moment, key: str) -> Overlay | None:
    """None for a session's id."""
    kind, _, rest = key.partition(":")
    if kind != "iteration" or not rest:
        return None
    sub_task, number = map(int, rest.split(":"))
    return Overlay(_name(m, sub_task, number), m, (sub_task, number))
