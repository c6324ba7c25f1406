"""A session as one JSON document: what `show --json` prints (docs/json.md). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum
from typing import Any

from rlgpt.console.view import ahead
from rlgpt.store.event_payloads import payload_of
from rlgpt.store.events import IterationResult
from rlgpt.store.history import (
    Attempt,
    EvaluationState,
    History,
    IterationState,
    Measured,
    PlanState,
    TaskPlanState,
    TrialState,
    VerdictState,
    pool,
)
from rlgpt.store.row_types import CommandRow


def whole(h: History, inbox: Iterable[CommandRow] = ()) -> dict[str, Any]:
    """`inbox`: the commands that were sent; those that no worker has taken yet are queued."""
    best = h.outcome
    return {
        **summary(h),
        "world_version": h.session.get("world_version"),
        "settings": h.session.get("settings", {}),
        "versions": h.session.get("versions", {}),
        "where": {"node": h.where.get("node"), "cpu": h.where.get("cpu")} if h.where else None,
        "task_plans": [_task_plan(plan) for plan in h.task_plans],
        "plan": _plan(h.plan) if h.plan else None,
        "pending_plan": _plan(h.pending_plan) if h.pending_plan else None,
        "iterations": [_iteration(h, iteration) for iteration in h.iterations],
        "incumbent": _incumbent(h, best) if best else None,
        "test": _split(best, "test") if best else None,
        "overrides": _commands(h, inbox),
        "left": ahead.tree(ahead.left(h)),
        "nondeterministic": h.nondeterministic,
        "skills_kept": [payload_of(skill) for skill in h.skills_kept],
    }


def _commands(h: History, inbox: Iterable[CommandRow]) -> list[dict[str, Any]]:
    taken = [
        {k: getattr(c, k) for k in ("id", "kind", "payload", "author", "revision", "state", "reason")}
        for c in h.commands.values()
    ]
    queued = [
        {"id": c["id"], "kind": c["kind"], "payload": c["payload"], "author": c["author"], "revision": c["revision"],
         "state": "queued", "reason": ""}
        for c in inbox if c["id"] not in h.commands
    ]  # fmt: skip
    return taken + queued


def _task_plan(plan: TaskPlanState) -> dict[str, Any]:
    return {
        "revision": plan.revision,
        "author": plan.author,
        "sub_tasks": plan.sub_tasks,
        "reason": plan.reason,
    }


def _incumbent(h: History, best: IterationState) -> dict[str, Any]:
    played = best.result.variant if best.result else "full"
    return {
        "sub_task": best.sub_task,
        "iteration": best.number,
        "played": played,
        "why": h.incumbents[best.sub_task].why,
    }


def summary(h: History) -> dict[str, Any]:
    """The head of `show --json`."""
    session = h.session
    last = h.iteration
    best = h.outcome
    dev = h.developed(best) if best else Measured(0, 0)
    return {
        "id": session.get("session_id"),
        "name": session.get("name"),
        "task": session.get("task"),
        "world": session.get("world"),
        "llm": session.get("settings", {}).get("llm", {}).get("kind"),
        "seed": session.get("settings", {}).get("seed"),
        "parent": {"id": session.get("parent_id"), "seq": session.get("parent_seq")}
        if session.get("parent_id")
        else None,
        "status": h.result if h.status == "ended" else h.status,
        "reason": h.reason,
        "phase": h.phase.name or None,
        "waiting_for": h.waiting_for or None,
        "revision": h.revision,
        "iteration": last.number if last else None,
        "env_steps": h.spent.env_steps,
        "dev": rate_of(dev) if dev.episodes else None,
        "cost": cost_of(h.spent.cost, h.spent.unknown_price, h.spent.tokens) | {"calls": h.spent.calls},
        "started_at": h.started_at,
        "last_at": h.at,
        "active_seconds": h.active,
        "incarnation": h.incarnation,
        "seq": h.seq,
    }


def cost_of(usd: float, unknown: bool, tokens: int) -> dict[str, Any]:
    """`usd` is null when a price is unknown; `known_usd` is what the known prices add up to."""
    return {"usd": None if unknown else round(usd, 6), "known_usd": round(usd, 6), "tokens": tokens}


def _iteration(h: History, iteration: IterationState) -> dict[str, Any]:
    last = h.plans[iteration.plans[-1]] if iteration.plans else None
    return {
        "sub_task": iteration.sub_task,
        "iteration": iteration.number,
        "plan": _plan(last) if last else None,
        "revisions": iteration.plans,
        "attempts": [_attempt(a, trial) for a, trial in _tried(h, iteration)],
        "configuration": dict(iteration.config.config) if iteration.config else None,
        "training": [_training(h, run) for run in iteration.runs],
        "evaluation": [_split(iteration, split) for split in dict.fromkeys(e.split for e in iteration.evaluations)],
        "verdict": _verdict(iteration.verdict),
        "result": _result(iteration.result),
    }


def _result(result: IterationResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    ci95 = [round(result.low, 4), round(result.high, 4)]
    return {"variant": result.variant, "value": result.score, "ci95": ci95, "why": result.why}


def _plan(plan: PlanState) -> dict[str, Any]:
    return {
        "revision": plan.revision,
        "author": plan.author,
        "executor": plan.executor,
        "status": plan.status,
        "rationale": plan.rationale,
        "attempted": dict(plan.attempted),
        "sub_actions": [
            {
                "name": item.name,
                "mode": item.mode,
                "reason": item.reason,
                "pinned": item.pinned,
                "goal": item.goal,
                **({"trigger": item.trigger} if item.trigger else {}),
                "done_when": item.done_when,
                "max_steps": item.max_steps,
                "author": item.author,
                **_chosen(plan, item.name),
            }
            for item in plan.items
        ],
    }


def _chosen(plan: PlanState, name: str) -> dict[str, Any]:
    """The version in use under this plan: `accepted_version` if its trials accepted it."""
    chosen = plan.chosen.get(name)
    return {
        "accepted_version": chosen.version if chosen and chosen.accepted else None,
        "acting_version": chosen.version if chosen else None,
        "why": chosen.why if chosen else None,
    }


def _tried(h: History, iteration: IterationState) -> Iterator[tuple[Attempt, TrialState | None]]:
    """The versions that an iteration wrote or tried, each with its last trial there: one that failed and was accepted
    in a later iteration failed in this one."""
    for attempt in h.attempts:
        mine = [trial for _, trial in attempt.trials if trial.revision in iteration.plans]
        if mine or (attempt.sub_task, attempt.iteration) == (iteration.sub_task, iteration.number):
            yield attempt, mine[-1] if mine else None


def _attempt(attempt: Attempt, trial: TrialState | None) -> dict[str, Any]:
    refusal = "" if attempt.admitted else str(attempt.admission.get("message", ""))
    return {
        "sub_action": attempt.sub_action,
        "version": attempt.version,
        "attempt": attempt.attempt,
        "author": attempt.author,
        "source_hash": attempt.source_hash,
        "admitted": attempt.admitted,
        "error": (trial.error if trial else "") or refusal or None,
        "measured": {
            "outcome": trial.outcome,
            "successes": trial.successes,
            "episodes": trial.episodes,
            "prefixes": trial.prefixes,
            "env_steps": trial.env_steps,
        }
        if trial
        else None,
        "verdict": _verdict(attempt.verdict) if trial is attempt.trial else None,
    }


def _training(h: History, number: int) -> dict[str, Any]:
    run = h.runs[number]
    return {
        "run": number,
        "revision": run.revision,
        "state": run.state,
        "reason": run.reason,
        "env_steps": run.env_steps,
        "env_steps_planned": run.env_steps_planned,
        "decisions": run.decisions,
        "updates": run.updates,
        "warm": run.warm_from is not None,
        "warm_from": run.warm_from,
        "options": [slot.get("name") for slot in run.slots],
        "device": run.device,
    }


def _split(iteration: IterationState, split: str) -> dict[str, Any] | None:
    """All variants of the policy evaluated last on this split; None if it was not evaluated."""
    every = [e for e in iteration.evaluations if e.split == split]
    full = [e for e in every if e.variant == "full"]
    if not full:
        return None
    key = (full[-1].revision, full[-1].run)
    same = [e for e in every if (e.revision, e.run) == key]
    variants = dict.fromkeys(e.variant for e in same if e.variant != "full")
    of_policy = [e for e in same if e.variant == "full"]
    return {
        "split": split,
        "revision": full[-1].revision,
        "policy": full[-1].policy,
        **_pool(of_policy),
        "options_off": None,
        "primitives_off": None,
        **{variant: _pool([e for e in same if e.variant == variant]) for variant in variants},
        "funnel": _sum(e.funnel for e in of_policy),
        "option_usage": _sum(e.option_usage for e in of_policy),
    }


def _pool(parts: list[EvaluationState]) -> dict[str, Any]:
    pooled = pool(parts)
    episodes = pooled.episodes
    weighted = fsum(e.return_mean * e.episodes for e in parts), fsum(e.length_mean * e.episodes for e in parts)
    return {
        **rate_of(pooled),
        "return_mean": weighted[0] / episodes if episodes else None,
        "length_mean": weighted[1] / episodes if episodes else None,
        "dead_loops": sum(e.dead_loops for e in parts),
    }


def rate_of(m: Measured) -> dict[str, Any]:
    """A result is never printed without its episodes and its 95% interval (Wilson). Where it is a score there is no
    rate, and `ci95` is the score's."""
    return {
        "successes": m.successes,
        "episodes": m.episodes,
        "rate": m.value if m.episodes and m.score is None else None,
        "score": m.score,
        "ci95": [round(m.low, 4), round(m.high, 4)],
    }


def _sum(parts: Iterable[Any]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, number in part.items():
            total[name] = total.get(name, 0) + number
    return total


def _verdict(verdict: VerdictState | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    keys = ("author", "success", "confidence", "cause", "advice_slow", "advice_fast", "measured", "better")
    return {key: getattr(verdict, key) for key in keys}
