"""The rules that decide what acts of an iteration, and which iteration is the result (docs/method.md)."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from rlgpt.store.events import Incumbent, IterationResult
from rlgpt.store.history import History, IterationState, Measured
from rlgpt.store.intervals import chance_of_lead
from rlgpt.store.measured import first_of, pool, won_by

LUCK = 0.16
"""Probability from which a lead may be luck: a lead of one standard error has it, in a one-sided test."""


class Lead(NamedTuple):
    """The policy of an iteration against its code alone, in development episodes of the same seeds."""

    ahead: bool
    """Its lead is no luck (`LUCK`); where the result is a score, it has any."""
    open: bool
    """They won different episodes, and the lead of either may be luck: more episodes may tell."""
    why: str


def lead_of_policy(h: History, iteration: IterationState) -> Lead | None:
    """None where only one of the two was played.

    A policy acts mostly like its code, so the episodes that only one of them won tell the two apart earlier than their
    shares of successes do. Code that won no episode has nothing to lose: any that the policy won are enough."""
    policy = best_play(h, iteration)[1]
    code = h.pooled(iteration, "dev", "plan")
    if not learnt(iteration) or not code.episodes:
        return None
    gap = policy.value - code.value
    apart = won_apart(h, iteration)
    if h.scored:
        ahead, undecided, told = gap > 0, False, ""
    elif apart is None:  # a session of before these were recorded
        error = sqrt(sum(m.value * (1 - m.value) / m.episodes for m in (policy, code)))
        ahead, undecided, told = gap > error, False, ""
    else:
        ours, theirs, shared = apart
        luck = code.successes > 0 and chance_of_lead(ours, theirs) >= LUCK
        ahead, undecided = ours > theirs and not luck, ours + theirs > 0 and luck
        told = f"; of {shared} episodes {ours} won by the policy alone, {theirs} by the code alone"
    why = f"policy {policy.value:.2f}, code alone {code.value:.2f}{told}: " + (
        "the policy is ahead" if ahead else "the policy is not ahead" if h.scored or gap <= 0
        else "the policy's lead may be luck"
    )  # fmt: skip
    return Lead(ahead, undecided, why)


def won_apart(h: History, iteration: IterationState) -> tuple[int, int, int] | None:
    """Development episodes that only the policy won, that only the code alone won, and that both played. None where it
    is not recorded who won which."""
    variant, policy = best_play(h, iteration)
    shared = min(policy.episodes, h.pooled(iteration, "dev", "plan").episodes)
    by_policy, by_code = (won_by(h.parts(iteration, "dev", each), shared) for each in (variant, "plan"))
    if by_policy is None or by_code is None:
        return None
    return len(by_policy - by_code), len(by_code - by_policy), shared


def learnt(iteration: IterationState) -> bool:
    """Whether its development episodes were those of a policy: of the revision evaluated last."""
    full = [e for e in iteration.evaluations if (e.split, e.variant) == ("dev", "full")]
    return bool(full) and full[-1].policy == "ppo"


def best_play(h: History, iteration: IterationState) -> tuple[str, Measured]:
    """How the policy did best in development: sampled, or with its most probable actions."""
    full, greedy = (h.pooled(iteration, "dev", variant) for variant in ("full", "greedy"))
    return ("greedy", greedy) if greedy.episodes and greedy.value > full.value else ("full", full)


def iteration_result(h: History, iteration: IterationState) -> IterationResult | None:
    """What acts of an iteration, and how well. A policy acts where it was ahead of the code alone."""
    variant, policy = best_play(h, iteration)
    if not policy.episodes:
        return None
    lead = lead_of_policy(h, iteration)
    if lead:
        why = lead.why
        if not lead.ahead:
            variant, policy = "plan", h.pooled(iteration, "dev", "plan")
    elif learnt(iteration):
        why = "there is no code to compare the policy with"
    else:
        why = "the sequence of code is all there is"
    if variant == "greedy":
        why += f"; greedily {policy.value:.2f}, sampled {h.pooled(iteration, 'dev', 'full').value:.2f}"
    return IterationResult(iteration.sub_task, iteration.number, variant, policy.value, policy.low, policy.high, why)


def incumbent(h: History, newest: IterationResult | None) -> Incumbent | None:
    """The closed iteration of this sub-task with the highest result, ties to the earlier. What was worth more episodes
    must not lose by them: of two, the one that was played on more goes before where all its episodes, or the first of
    them, which both played, are better. `newest` is the result that is not written yet."""
    results = {i.number: i.result for i in h.iterations if i.sub_task == h.sub_task and i.result}
    if newest:
        results[newest.iteration] = newest
    if not results:
        return None
    parts = {
        i.number: h.parts(i, "dev", results[i.number].variant)
        for i in h.iterations if i.sub_task == h.sub_task and i.number in results
    }  # fmt: skip
    episodes = {number: sum(e.episodes for e in parts[number]) for number in results}
    best, *later = sorted(results)
    for number in later:
        both = min(episodes[best], episodes[number])
        ours, theirs = (
            max(pool(parts[each]).value, first_of(parts[each], both).value) for each in (number, best)
        )  # fmt: skip
        if ours > theirs:
            best = number
    name = "score" if h.scored else "success"
    value = f"development {name} {results[best].score:.2f}"
    if len(results) == 1:
        return Incumbent(h.sub_task, best, f"the only iteration so far, {value}")
    if len(set(episodes.values())) > 1:
        why = f"{value} over {episodes[best]} episodes, the best by all of these or by those that the others played too"
        return Incumbent(h.sub_task, best, why)
    level = [number for number in later if number != best and results[number].score == results[best].score]
    why = f"highest development {name} of {len(results)} iterations, {results[best].score:.2f}"
    return Incumbent(h.sub_task, best, why + (f", level with the later iteration {level[0]}" if level else ""))


def warm_start_source(h: History) -> IterationState | None:
    """What training starts from and what plays sub-actions left to RL: the incumbent, and until this sub-task has one,
    that of the sub-task before, which is the same task up to an earlier milestone."""
    return h.incumbent or h.incumbent_of(h.sub_task - 1)
