"""Summarises a session for a role: the last attempt and critique in full, a line for each earlier one.

Plain data for the prompts; pure. The two critics are blind to some of it: see critic.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from rlgpt.agents.choice import NO_CODE, changing_before, good_enough, plan_uses, required_rate
from rlgpt.agents.context import Context
from rlgpt.agents.shortening import shortened
from rlgpt.store import failures
from rlgpt.store.history import (
    Attempt,
    EvaluationState,
    History,
    Item,
    IterationState,
    Measured,
    PlanState,
    TrialState,
    VerdictState,
    pool,
)
from rlgpt.store.row_types import JsonObject

Plain = dict[str, Any]
MOST_LOST = 3
"""Lost episodes, or failed trials, that one request shows."""

NEAREST = 10
"""Skills that are offered to be called."""
OTHERS_CAP = 8_000
"""Characters of code of other sub-actions that one request shows."""
MOST_SAID = 2_000
"""Characters of one text of a critique, or of a configuration, that a later request shows. The row keeps all of it."""
MOST_SAID_OF_EACH = 1_000
"""The same of a text that a plan shows for each of its sub-actions, and of the last iteration's critique for code."""


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
        "sub_actions": [item_now(history, plan, item) | _changing(context, plan, item) for item in plan.items],
    }


def _changing(context: Context, plan: PlanState, item: Item) -> Plain:
    """Which code of it, or before it, the next iteration asks for by itself."""
    history, target = context.history, context.limits.target
    if names := changing_before(history, plan, item, target):
        return {"code_before_it_changes": names}
    code = history.accepted(plan, item)
    loses = code is not None and item.mode != "rl" and not good_enough(history, plan, item, code, target)
    return {"loses_too_much": True} if loses else {}


def item_now(history: History, plan: PlanState, item: Item) -> Plain:
    """One sub-action with `state`: left to RL | accepted | failed | unreached | untried."""
    facts: Plain = {
        "name": item.name,
        "mode": item.mode,
        "goal": item.goal,
        **({"trigger": item.trigger} if item.trigger else {}),
        "done_when": item.done_when,
        "max_steps": item.max_steps,
        "pinned": item.pinned,
    }
    attempts = history.attempts_of(item.name)
    tried = [(a, trial) for a in attempts if (trial := a.last_trial(item.done_when))]
    if item.mode == "rl":
        facts["state"] = "left to RL"
        if any(trial.outcome == "failed" for a in attempts for _, trial in a.trials):
            facts["code_failed_before"] = True
        if partly := history.acting(plan, item):
            facts["code_as_an_action"] = _ratio(partly.last_trial(item.done_when))
    elif accepted := history.accepted(plan, item):
        trial = accepted.last_trial(item.done_when)
        facts |= {"state": "accepted", **_in_trials(trial)}
    elif tried:
        attempt, trial = next(((a, t) for a, t in reversed(tried) if has_code(a)), tried[-1])
        facts["state"] = "unreached" if trial.outcome == "unreached" else "failed"
        facts |= {
            "outcome": trial.outcome,
            **_in_trials(trial),
            "versions_tried": len(tried),
        }
        said = critique(attempt.verdict, "advice_slow", most=MOST_SAID_OF_EACH) or {}
        told = {
            "error": shortened(trial.error, MOST_SAID_OF_EACH),
            "critique": said.get("cause"),
            "advice": said.get("advice_slow"),
        }
        if attempt is not tried[-1][0]:
            told["no_further_version"] = shortened(tried[-1][1].error, MOST_SAID_OF_EACH)
        facts |= {k: v for k, v in told.items() if v}
    else:
        facts["state"] = "untried"
    return facts


def was_vacuous(context: Context, name: str) -> bool:
    """Whether the code of a sub-action could not be judged, because of its predicates."""
    plan = context.history.plan
    item = plan.item(name) if plan else None
    tried = [trial for a in context.history.attempts_of(name) if item and (trial := a.last_trial(item.done_when))]
    return bool(tried) and tried[-1].outcome == "vacuous"


def has_code(attempt: Attempt) -> bool:
    """False where the fast agent answered without code, or with nothing of use: what is wrong is told by a version
    before."""
    return attempt.admission.get("rule") != NO_CODE


def _in_trials(trial: TrialState | None) -> Plain:
    """Its successes; in how many of the episodes begun it was needed, where that is not all of them; how those that
    failed ended."""
    if trial is None:
        return {"measured": ""}
    facts: Plain = {"measured": _ratio(trial)}
    if trial.episodes < trial.prefixes:
        facts["needed_in"] = f"{trial.episodes} of {trial.prefixes} episodes"
    if failed_by := trial.failed_by:
        facts["failed_by"] = failed_by
    return facts


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


def measured(context: Context, iteration: IterationState) -> Plain:
    """Dev evaluation of an iteration: success of what was run and, beside a policy, of the plan's code alone."""
    history = context.history
    facts: Plain = {"iteration": iteration.number}
    full = _evaluations(iteration, "full")
    if not full:
        return facts
    last = full[-1]
    pooled = history.pooled(iteration, "dev", "full")
    facts |= {
        "ran": "policy" if last.policy == "ppo" else "plan",
        **result(pooled),
        "ci95": [round(bound, 3) for bound in pooled.interval],
        "length_mean": round(fsum(e.length_mean * e.episodes for e in full) / pooled.episodes, 1),
        "dead_loops": sum(e.dead_loops for e in full),
    }
    facts |= {name: _summed([getattr(e, name) for e in full]) for name in _COUNTED}
    facts |= _ends(full)
    for variant, name in (("plan", "plan_alone"), ("greedy", "greedy")):
        if parts := _evaluations(iteration, variant, last):
            facts[name] = result(pool(parts))
    run = history.runs.get(iteration.runs[-1]) if iteration.runs else None
    if run:
        facts["training"] = {
            "env_steps": run.env_steps,
            "updates": run.updates,
            "episodes": run.episodes,
            "successes": run.successes,
            "ended": run.state,
            "ten_points": dict(context.series(run.run)),
        }
    return facts


def _ends(parts: Sequence[EvaluationState]) -> Plain:
    """How the episodes ended and when sub-actions were done, where that was recorded."""
    told = [part for part in parts if part.failures]
    if not told:
        return {}
    reached: dict[str, list[tuple[float, int]]] = {}
    for part in told:
        for name, step in part.failures["mean_step"].items():
            reached.setdefault(name, []).append((step, part.funnel.get(name, 0)))
    lacking = _summed([part.failures.get("lost_worlds", {}) for part in told])
    return {
        "ends": _summed([part.failures["ends"] for part in told]),
        "lost_at": _summed([part.failures["lost_at"] for part in told]),
        **({"lost_worlds": lacking} if lacking else {}),
        "mean_step": {
            name: round(fsum(step * count for step, count in seen) / max(1, sum(count for _, count in seen)), 1)
            for name, seen in reached.items()
        },
    }


def same_seeds(iteration: IterationState, before: IterationState) -> Plain:
    """The two iterations seed by seed: development episodes have the same seeds in every iteration."""
    parts = [_evaluations(each, "full") for each in (iteration, before)]
    if not all(part.failures for of in parts for part in of) or not all(parts):
        return {}
    count = min(sum(part.episodes for part in of) for of in parts)
    now, then = ({i for part in of for i in part.failures["won"] if i < count} for of in parts)
    return {
        "same_seeds_as_the_iteration_before": {
            "episodes": count, "won_in_both": len(now & then), "won_only_now": len(now - then),
            "won_only_before": len(then - now), "lost_in_both": count - len(now | then),
        }
    }  # fmt: skip


def compared_with_before(history: History) -> Plain:
    """The last two closed iterations of this sub-task, seed by seed."""
    mine = [i for i in history.iterations if i.sub_task == history.sub_task and i.verdict]
    return same_seeds(mine[-1], mine[-2]) if len(mine) > 1 else {}


def lost_episodes(
    iteration: IterationState | None, item: str = "", most: int = MOST_LOST, *, blind: bool = False
) -> list[str]:
    """How some lost development episodes of what was run went; with `item`, those that this sub-action lost: it was
    the first that was not done, or acted when the episode ended. `blind`: only the latter, and no word of what
    counted as done."""
    lost = [failure for part in (_evaluations(iteration, "full") if iteration else ()) for failure in _kept(part)]
    if item:
        by = ("doing",) if blind else ("undone", "doing")
        lost = [failure for failure in lost if item in (failure.get(name) for name in by)]
    if blind:
        lost = [{**failure, "undone": ""} for failure in lost]
    return [failures.told(failure) for failure in failures.choose(lost, most)]


def lost_trials(trial: TrialState | None, most: int = MOST_LOST) -> list[str]:
    """How some failed trials of a version went."""
    kept = trial.evidence.get("lost") if trial else None
    return [failures.told(failure) for failure in failures.choose(kept or [], most)]


def lost_trials_of(context: Context, name: str, most: int) -> list[str]:
    """How failed trials of the newest tried version of a sub-action went."""
    tried = [attempt.trial for attempt in context.history.attempts_of(name) if attempt.trial and has_code(attempt)]
    return lost_trials(tried[-1], most) if tried else []


def _kept(part: EvaluationState) -> Sequence[failures.Failure]:
    kept: Sequence[failures.Failure] = part.failures.get("lost") or []
    return kept


def result(pooled: Measured) -> Plain:
    """Episodes that succeeded, or the score from 0 to 1 where the result of the task is one."""
    if pooled.score is not None:
        return {"score": round(pooled.score, 4), "episodes": pooled.episodes}
    return {"successes": pooled.successes, "episodes": pooled.episodes}


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


def critique(verdict: VerdictState | None, *advice: str, most: int = MOST_SAID) -> Plain | None:
    """A verdict for the agent(s) it advises (`advice_slow`, `advice_fast`), each text at most so long; the operator's
    stands word for word."""
    if verdict is None:
        return None
    said = {name: getattr(verdict, name) for name in ("cause", *advice)}
    if verdict.author != "operator":
        said = shortened(said, most)
    return {"author": verdict.author, "success": verdict.success, **said}


def critique_of_plan(history: History) -> Plain | None:
    """The verdict on the last closed iteration for the fast agent, where it says something to it."""
    last = last_closed(history)
    said = last.verdict if last else None
    return critique(said, "advice_fast", most=MOST_SAID_OF_EACH) if said and said.advice_fast else None


def configured(config: Mapping[str, Any] | None) -> Plain | None:
    """A configuration of RL as a request shows it."""
    return dict(shortened(config, MOST_SAID)) if config else None


def earlier_iterations(history: History) -> list[str]:
    """One line for each closed iteration of this sub-task but the last, oldest first."""
    mine = [i for i in history.iterations if i.sub_task == history.sub_task and i.verdict]
    lines = []
    for iteration in mine[:-1]:
        full = history.pooled(iteration, "dev", "full")
        dev = f"{full.successes}/{full.episodes}" if full.score is None else f"score {full.score:.3f}"
        plan = history.plans[iteration.plans[-1]] if iteration.plans else None
        items = ", ".join(f"{i.name} ({i.mode})" for i in plan.items) if plan else "no plan"
        executor = plan.executor if plan else ""
        cause = iteration.verdict.cause if iteration.verdict else ""
        lines.append(f"iteration {iteration.number}: {executor}: {items}; dev {dev}; {_line(cause)}")
    return lines


# ---- code ---------------------------------------------------------------------------------------
def attempt_now(context: Context, item: Item, last: Attempt | None) -> Plain | None:
    """A version of a sub-action's code, with what was measured of it for today's done_when."""
    if last is None:
        return None
    facts: Plain = {"version": last.version, "author": last.author, "source_hash": last.source_hash}
    trial = last.last_trial(item.done_when)
    if trial:
        error = shortened(trial.error, MOST_SAID)
        facts |= {"outcome": trial.outcome, **_in_trials(trial), "error": error}
        facts["evidence"] = _evidence(trial.evidence)
    elif last.trial:  # the plan has re-worded it since
        facts |= {"measured_against": last.done_when, "outcome_then": last.trial.outcome}
        facts["measured_then"] = _ratio(last.trial)
    facts |= _in_use(context, item, last)
    if not last.admitted and last.admission:
        told: Mapping[str, Any] = last.admission
        facts["refused"] = {k: told.get(k) for k in ("rule", "line", "message")}
    return facts


def _evidence(evidence: Mapping[str, Any]) -> Plain:
    """How a trial ended that went well, and one that did not where it is not told in full (`lost_trials`)."""
    keys = ("difference", "yields", "end", "message")
    names = ("good",) if evidence.get("lost") else ("good", "bad")
    return {
        name: {k: trial[k] for k in keys if k in trial}
        for name in names
        if isinstance(trial := evidence.get(name), Mapping)
    }


def code_of_others(context: Context, item: Item) -> list[str]:
    """Sources of the plan's other sub-actions that act, as they were when this plan was made: what becomes of them
    since may not change what is asked about this one, because the questions about all are asked together."""
    history, plan = context.history, context.history.plan
    if plan is None:
        return []
    sources: list[str] = []
    room = OTHERS_CAP
    for other in plan.items:
        tried = [a for a in history.attempts_of(other.name) if (t := a.accepting_trial(other.done_when))
                 and t.seq < plan.seq]  # fmt: skip
        source = context.text(tried[-1].source_hash) if tried and other.name != item.name else ""
        if source and len(source) <= room:
            room -= len(source)
            sources.append(source)
    return sources


def nearest_skills(context: Context, item: Item) -> list[JsonObject]:
    """Skills of other names whose name and goal share most words with this sub-action's."""
    wanted = _words(item.name, item.goal)
    scored = [(len(wanted & _words(str(s.get("name")), str(s.get("goal")))), s) for s in context.skills]
    near = [(score, skill) for score, skill in scored if score and skill.get("name") != item.name]
    return [skill for _, skill in sorted(near, key=lambda pair: -pair[0])[:NEAREST]]  # the sort is stable


def _words(*texts: str) -> set[str]:
    return {word for text in texts for word in re.findall(r"[a-z]{3,}", text.lower())} - {"the", "and", "for", "with"}


def earlier_attempts(context: Context, item: Item, earlier: Sequence[Attempt]) -> list[Plain]:
    """Version, source hash and outcome (for today's done_when) of each of these versions."""
    out = []
    for attempt in earlier:
        trial = attempt.last_trial(item.done_when)
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
    used, plan = plan_uses(context.history, item).get(attempt.source_hash), context.history.plan
    if used is None or plan is None:
        return {}
    enough = required_rate(plan, context.limits.target)
    return {"in_the_plan": f"{used.done}/{used.visits}", "enough_in_the_plan": enough}


def _line(text: str, most: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


# ---- where the session stands -----------------------------------------------------------------------
def passes(context: Context) -> Plain:
    """The iteration that is open, and how many may follow."""
    history = context.history
    return {
        "iteration": history.iteration.number if history.iteration else 0,
        "iterations_left_after_this": context.iterations_left - 1,
    }


def wanted(item: Item) -> Plain:
    """A sub-action as the fast agent is asked for it."""
    mode = {"mode": item.mode} if item.is_option else {}
    return {k: getattr(item, k) for k in ("name", "goal", "trigger", "done_when", "max_steps")} | mode


# ---- rewards ------------------------------------------------------------------------------------
def reward_sources(context: Context, config: Mapping[str, Any] | None) -> list[str]:
    """The sources of a configuration's generated reward terms."""
    terms = (config or {}).get("reward") or ()
    return [context.text(term["argument"]) for term in terms if term["term"] == "generated" and term["argument"]]
