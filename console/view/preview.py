"""Below the sessions list: the selected session in a few lines."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from rlgpt.console.view.numbers import count, day_time, duration, measured, money, size
from rlgpt.console.view.sessions import dev_word, model_words, state
from rlgpt.console.view.text import Line, fit, line, wrap

if TYPE_CHECKING:
    from rlgpt.store.catalog import Summary

HEIGHT = 7


def lines(s: Summary | None, now: float, width: int, hung: Collection[str] = ()) -> list[Line]:
    if s is None:
        return []
    if s.fault:
        return [line((s.id, "bold")), *wrap(s.fault, width, "bad", most=HEIGHT - 1)]
    word, style = state(s, hung)
    out = [line((s.name, "brand"), ("  " + s.id, "dim"), ("  ● ", style), (word, style))]
    if s.reason:
        out += wrap(s.reason, width, "", most=2)
    out.append(
        line(("task      ", "dim"), s.task, ("  in ", "dim"), s.world, ("  model ", "dim"), model_words(s.model))
    )
    out.append(
        line(
            ("result    ", "dim"),
            ("test ", "dim"),
            (measured(s.test), "bold"),
            (f"   {dev_word(s)} ", "dim"),
            measured(s.dev),
        )
    )
    cost = "none" if s.model == "rules" else money(s.cost, s.unknown_price)
    out.append(
        line(
            ("spent     ", "dim"),
            f"{count(s.env_steps)} env steps, {duration(s.active)} active, {count(s.tokens)} tokens, cost {cost}, "
            f"{size(s.size)}",
        )
    )
    parent = f", forked from {s.parent_id}" if s.parent_id else ""
    out.append(
        line(
            ("started   ", "dim"),
            f"{day_time(s.started_at)}{parent}, last row {duration(max(now - s.at, 0))} ago",
            (f"  {' '.join(s.tags)}" if s.tags else "", "accent"),
        )
    )
    return [fit(one, width) for one in out[:HEIGHT]]
