"""What a role remembers of a session: the last attempt and critique in full, a line for each earlier one.

Plain data for the prompts; pure. The two critics are blind to some of it: see critic.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlgpt.agents.context import Context
from rlgpt.agents.loop import enough
from rlgpt.store.history import Attempt, EvaluationState, History, Item, IterationState, TrialState, VerdictState
from rlgpt.store.intervals import wilson

Plain = dict[str, Any]


# ---- plans --------------------------------------------------------------------------------------
def plan_now(context: Context) -> Plain | None:
    """The plan in force with what became of each sub-action; None before the first."""
    history = context.history
    plan = history.plan
    if plan is None or plan.sub_task != history.sub_task:
        return None
    return {
        "revision": plan.revision,
        "executor": plan.executor,
        "sub_actions": [item_now(history, item) for item in plan.items],
    }


def item_now(history: History, item: Item) -> Plain:
    """One sub-action with `state`: left to RL | accepted | failed | unreached | untried."""
    facts: Plain = {
        "name": item.name,
        "mode": item.mode,
        "goal": item.goal,
        "done_when": item.done_when,
        "max_steps": item.max_steps,
        "pinned": item.pinned,
    }
    attempts = history.attempts_of(item.name)
    tried = [(a, trial) for a in attempts if (trial := trial_of(a, item))]
    if item.mode == "rl":
        facts["state"] = "left to RL"
        if any(trial.outcome == "failed" for a in attempts for _, trial in a.trials):
            facts["code_failed_before"] = True
        if partly := history.usable(item):
            facts["code_as_an_action"] = _ratio(trial_of(partly, item))
    elif accepted := history.accepted(item):
        facts |= {"state": "accepted", "measured": _ratio(trial_of(accepted, item))}
    elif tried:
        attempt, trial = tried[-1]
        facts["state"] = "unreached" if trial.outcome == "unreached" else "failed"
        facts |= {"outcome": trial.outcome, "measured": _ratio(trial), "versions_tried": len(tried)}
        verdict = attempt.verdict
        told = {"error": trial.error} | ({"critique": verdict.cause, "advice": verdict.advice_slow} if verdict else {})
        facts |= {k: v for k, v in told.items() if v}
    else:
        facts["state"] = "untried"
    return facts


def trial_of(attempt: Attempt, item: Item) -> TrialState | None:
    """The last trial of a version for this item's predicate."""
    return next((trial for measured, trial in reversed(attempt.trials) if measured == item.done_when), None)


def _ratio(trial: TrialState | None) -> str:
    return f"{trial.successes}/{trial.episodes}" if trial else ""


def rejected_plan(context: Context) -> Plain | None:
    """The newest plan, if the operator has rejected it."""
    plans = context.history.plans
    last = plans[max(plans)] if plans else None
    if last is None or last.status != "rejected":
        return None
    names = [{"name": i.name, "mode": i.mode} for i in last.items]
    return {"executor": last.executor, "sub_actions": names, "operator": last.rejection}


# ---- iterations ---------------------------------------------------------------------------------
def last_closed(history: History) -> IterationState | None:
    """The newest iteration of this sub-task that has a verdict."""
    mine = [i for i in history.iterations if i.sub_task == history.sub_task and i.verdict]
    return mine[-1] if mine else None


def measured(history: History, iteration: IterationState) -> Plain:
    """Dev evaluation of an iteration: success of what was run and, beside a policy, of the plan's code alone."""
    facts: Plain = {"iteration": iteration.number}
    full = _evaluations(iteration, "full")
    if not full:
        return facts
    last = full[-1]
    successes, episodes = history.pooled(iteration, "dev", "full")
    facts |= {
        "ran": "policy" if last.policy == "ppo" else "plan",
        "successes": successes,
        "episodes": episodes,
        **({"counts": "successes / episodes is the score, from 0 to 1"} if history.scored else {}),
        "ci95": [round(bound, 3) for bound in wilson(successes, episodes)],
        "length_mean": round(sum(e.length_mean * e.episodes for e in full) / episodes, 1),
        "dead_loops": sum(e.dead_loops for e in full),
    }
    facts |= {name: _summed([getattr(e, name) for e in full]) for name in _COUNTED}
    if plan_alone := _evaluations(iteration, "plan", last):
        facts["plan_alone"] = {
            "successes": sum(e.successes for e in plan_alone),
            "episodes": sum(e.episodes for e in plan_alone),
        }
    if greedy := _evaluations(iteration, "greedy", last):
        facts["greedy"] = {
            "successes": sum(e.successes for e in greedy),
            "episodes": sum(e.episodes for e in greedy),
        }
    run = history.runs.get(iteration.runs[-1]) if iteration.runs else None
    if run:
        facts["training"] = {
            "env_steps": run.env_steps,
            "updates": run.updates,
            "episodes": run.episodes,
            "successes": run.successes,
            "ended": run.state,
        }
    return facts


_COUNTED = ("funnel", "milestones", "option_usage", "end_reasons", "rewards")
"""Sums over the episodes of an evaluation."""


def _evaluations(
    iteration: IterationState, variant: str, beside: EvaluationState | None = None
) -> list[EvaluationState]:
    """The parts of one dev evaluation: of the same plan revision and run as `beside`, else as the newest."""
    parts = [e for e in iteration.evaluations if e.split == "dev" and e.variant == variant]
    like = beside or (parts[-1] if parts else None)
    return [e for e in parts if like and (e.revision, e.run) == (like.revision, like.run)]


def _summed(counts: Sequence[Mapping[str, Any]]) -> Plain:
    """Numbers added up by key, nested where they are."""
    out: Plain = {}
    for part in counts:
        for key, value in part.items():
            if isinstance(value, Mapping):
                out[key] = _summed([out.get(key, {}), value])
            else:
                out[key] = out.get(key, 0) + value
    return out


def critique(verdict: VerdictState | None, *advice: str) -> Plain | None:
    """A verdict for the agent(s) it advises (`advice_slow`, `advice_fast`)."""
    if verdict is None:
        return None
    facts = {"author": verdict.author, "success": verdict.success, "cause": verdict.cause}
    return facts | {name: getattr(verdict, name) for name in advice}


def earlier_iterations(history: History) -> list[str]:
    """One line for each closed iteration of this sub-task but the last, oldest first."""
    mine = [i for i in history.iterations if i.sub_task == history.sub_task and i.verdict]
    lines = []
    for iteration in mine[:-1]:
        successes, episodes = history.pooled(iteration, "dev", "full")
        plan = history.plans[iteration.plans[-1]] if iteration.plans else None
        items = ", ".join(f"{i.name} ({i.mode})" for i in plan.items) if plan else "no plan"
        executor = plan.executor if plan else ""
        cause = iteration.verdict.cause if iteration.verdict else ""
        lines.append(f"iteration {iteration.number}: {executor}: {items}; dev {successes}/{episodes}; {_line(cause)}")
    return lines


# ---- code ---------------------------------------------------------------------------------------
def last_attempt(context: Context, item: Item) -> Plain | None:
    """The newest version of a sub-action's code, with what was measured of it for today's done_when."""
    attempts = context.history.attempts_of(item.name)
    if not attempts:
        return None
    last = attempts[-1]
    facts: Plain = {"version": last.version, "author": last.author, "source_hash": last.source_hash}
    trial = trial_of(last, item)
    if trial:
        facts |= {"outcome": trial.outcome, "measured": _ratio(trial), "error": trial.error}
        facts["evidence"] = _evidence(trial.evidence)
    elif last.trial:
        facts["measured_against"] = last.done_when
    facts |= _in_use(context, item, last)
    if not last.admitted and last.admission:
        told: Mapping[str, Any] = last.admission
        facts["refused"] = {k: told.get(k) for k in ("rule", "line", "message")}
    return facts


def _evidence(evidence: Mapping[str, Any]) -> Plain:
    """How the trials ended, without the views (they are for the critic)."""
    keys = ("difference", "yields", "end", "message")
    return {
        name: {k: trial[k] for k in keys if k in trial}
        for name, trial in evidence.items()
        if isinstance(trial, Mapping)
    }


def earlier_attempts(context: Context, item: Item) -> list[Plain]:
    """Version, source hash and outcome (for today's done_when) of each earlier version, oldest first."""
    out = []
    for attempt in context.history.attempts_of(item.name)[:-1]:
        trial = trial_of(attempt, item)
        out.append(
            {
                "version": attempt.version,
                "source_hash": attempt.source_hash,
                "outcome": trial.outcome if trial else "untried",
                "measured": _ratio(trial),
                "error": _line(trial.error) if trial else "",
                "critique": _line(attempt.verdict.cause) if attempt.verdict else "",
                **_in_use(context, item, attempt),
            }
        )
    return out


def _in_use(context: Context, item: Item, attempt: Attempt) -> Plain:
    """How a version did in the whole plan: in how many of the dev episodes that came to it the item was done, and the
    share that would be enough."""
    used, plan = context.history.in_use(item).get(attempt.version), context.history.plan
    if used is None or plan is None:
        return {}
    return {"in_the_plan": f"{used[0]}/{used[1]}", "enough_in_the_plan": enough(context.limits, plan)}


def _line(text: str, most: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."
