"""The critic: of one sub-action's code from before and after, of an iteration from its measurements.

The critic of a sub-action never sees done_when, success counts or reward, nor which of the two trials the
measurement liked: it judges what the code did, so that its agreement with the measurement means something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rlgpt.agents import memory
from rlgpt.agents.asking import messages
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import CritiqueReply
from rlgpt.agents.journal import canonical, text_hash
from rlgpt.store.history import Item
from rlgpt.store.row_types import Evidence

SEEN = ("before", "after", "difference", "yields", "end", "message")
ENDS = ("return", "death", "error", "bad_yield", "budget", "killed", "quarantined")
"""How code ends by itself, or its agent. Every other end of a trial (`done`, `idle`, `time` ...) says what `done_when`
said."""


def judge_item(
    client: Client, context: Context, item: Item, evidence: Evidence, version: int | None = None
) -> CritiqueReply:
    """On one sub-action, the newest version unless told which. `evidence`: {good: trial | None, bad: trial | None},
    trials as in the trial row."""
    attempts = [a for a in context.history.attempts_of(item.name) if version is None or a.version == version]
    asked = messages(
        "critic",
        "critic_item",
        _blind(context),
        trim=("lost", "trials"),
        request={"ask": "judge_item"},
        item={"name": item.name, "goal": item.goal},
        trials=blind_trials(evidence),
        source=context.text(attempts[-1].source_hash) if attempts else "",
        lost=memory.lost_episodes(memory.last_closed(context.history), item.name, blind=True),
        advice=context.advice("critic"),
    )
    step = f"judge_item/{item.name}/{attempts[-1].version if attempts else 0}"
    return client.ask("critic", step, asked, CritiqueReply)


def blind_trials(evidence: Evidence) -> list[memory.Plain]:
    """The trials in an order that says nothing about which one was measured a success."""
    trials = [
        {k: trial[k] for k in SEEN if k in trial and (k != "end" or trial[k] in ENDS)}
        for name in ("good", "bad")
        if isinstance(trial := evidence.get(name), Mapping)
    ]
    return sorted(trials, key=lambda trial: text_hash(canonical(trial)))


def _blind(context: Context) -> Context:
    """Without whatever in the sheet says when something counts as done."""
    sheet = {k: v for k, v in context.sheet.items() if k != "scripts"}
    milestones = [
        {k: v for k, v in m.items() if k != "done_when"} if isinstance(m, Mapping) else m
        for m in sheet.get("milestones") or ()
    ]
    return replace(context, sheet=sheet | {"milestones": milestones})


def judge_iteration(
    client: Client, context: Context, iteration: int, difference: tuple[float, float, float] | None = None
) -> CritiqueReply:
    """On the open iteration `iteration`, from its dev evaluation. `difference`: what the policy reached beyond its
    code alone on the same seeds, mean and 95% interval, where that was measured."""
    history = context.history
    current = history.iteration
    if current is None or current.number != iteration:
        raise ValueError(f"iteration {iteration} is not the open one")
    before = memory.last_closed(history)
    asked = messages(
        "critic_of_iteration",
        "critic_iteration",
        context,
        trim=("earlier", "lost"),
        request={"ask": "judge_iteration", "iteration": iteration, "target": context.limits.target},
        plan=memory.plan_now(context),
        config=memory.configured(current.config.config) if current.config else None,
        reward_sources=memory.reward_sources(context, current.config.config if current.config else None),
        measured=memory.measured(context, current) | _difference(difference),
        before=_briefly(memory.measured(context, before)) if before else None,
        same_seeds=memory.same_seeds(current, before) if before else None,
        lost=memory.lost_episodes(current),
        advice=context.advice("critic"),
        earlier=memory.earlier_iterations(history),
    )
    step = f"judge_iteration/{history.sub_task}.{iteration}/{history.revision}"
    return client.ask("critic", step, asked, CritiqueReply)


def _briefly(measured: memory.Plain) -> memory.Plain:
    """The iteration before without its series."""
    training = {k: v for k, v in measured.get("training", {}).items() if k != "ten_points"}
    return measured | ({"training": training} if training else {})


def _difference(found: tuple[float, float, float] | None) -> memory.Plain:
    if found is None:
        return {}
    mean, low, high = (round(value, 3) for value in found)
    return {"policy_minus_plan_alone": {"score": mean, "ci95": [low, high]}}
