"""The rules that decide which code version acts, and all decisions that are due (docs/method.md).

Pure. The worker writes what `undecided` returns as events before it asks the loop for the next step; everything else
reads those events. So a decision is made once, with its reason, and a later change of these rules does not change
what a finished session says it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import NamedTuple

from rlgpt.agents.outcome import incumbent, iteration_result
from rlgpt.store.events import Decision, VersionChosen
from rlgpt.store.history import Attempt, History, Item, PlanState, TrialState
from rlgpt.store.intervals import chance_of_at_most

NO_CODE = "empty"
"""Admission's rule for an answer without code: the fast agent has nothing better to offer."""
MIN_PARTIAL_RATE = 0.2
"""Share of successful trials from which code acts although it was not accepted."""
CLEAR_TRIAL_GAP = 0.15
"""Difference of two shares of successful trials that says something: the standard error of 7 in 10 trials."""
GOOD_TRIAL_RATE = 0.9
"""Share of successful trials at which accepted code is left alone, if it does enough in the whole plan too."""
SIGNIFICANT = 0.05
"""Probability below which a loss is not taken for chance."""
MIN_VISITS = 5
"""Development episodes that must have come to a sub-action before they say anything about its code."""


class PlanUse(NamedTuple):
    """How a version did its work in the whole plan, in development episodes in which code alone acted."""

    done: int
    """Episodes in which the sub-action was done."""
    visits: int
    """Episodes that came to the sub-action."""

    @property
    def rate(self) -> float:
        return self.done / self.visits


def undecided(h: History) -> list[Decision]:
    """What the rules decide on this history and its rows do not say yet, in the order to write it. Nothing once a test
    episode was played: nothing may be decided after that."""
    if any(e.split == "test" for iteration in h.iterations for e in iteration.evaluations):
        return []
    decisions: list[Decision] = list(_versions(h))
    closed = h.iteration if h.iteration and h.iteration.closed else None
    result = iteration_result(h, closed) if closed else None
    if result and closed and result != closed.result:
        decisions.append(result)
    best = incumbent(h, result)
    if best and best != h.incumbents.get(best.sub_task):
        decisions.append(best)
    return decisions


# ---- drafts of one attempt ----------------------------------------------------------------------
def draft_of(attempt: Attempt) -> int:
    """Its number among the drafts of an attempt, from 1; 0 where an attempt is one version."""
    return int(attempt.admission.get("draft", 0))


def rounds(versions: Sequence[Attempt]) -> list[list[Attempt]]:
    """The drafts of one attempt together; every other version by itself."""
    attempts: list[list[Attempt]] = []
    for version in versions:
        if draft_of(version) > 1 and attempts and draft_of(attempts[-1][-1]) == draft_of(version) - 1:
            attempts[-1].append(version)
        else:
            attempts.append([version])
    return attempts


def best_draft(drafts: Sequence[Attempt]) -> Attempt:
    """The one with the largest share of successful trials, the first of equals: what is judged, shown and repaired."""
    return max(drafts, key=lambda a: (a.admitted, a.trial.share if a.trial and a.trial.episodes else 0.0))


def before_drafts(versions: Sequence[Attempt], draft: int) -> Sequence[Attempt]:
    """The versions before the attempt of which `draft` is the next: what its drafts are written from, all of them."""
    last = draft_of(versions[-1]) if versions and draft > 1 else 0
    return versions[: len(versions) - last] if last < draft else versions


# ---- which version acts -------------------------------------------------------------------------
def _versions(h: History) -> Iterator[VersionChosen]:
    """Of the plans that are worked on: the one in force while its iteration is open, and one that waits. What a closed
    iteration used stays as it is, so that it can be played and judged as it was."""
    iteration = h.iteration
    if iteration is None or iteration.closed:
        return
    for plan in (h.plan, h.pending_plan):
        if plan is None or (plan.sub_task, plan.iteration) != (iteration.sub_task, iteration.number):
            continue
        for item in plan.items:
            chosen = choose_version(h, plan, item)
            if chosen and chosen != plan.chosen.get(item.name):
                yield chosen


def choose_version(h: History, plan: PlanState, item: Item) -> VersionChosen | None:
    """None while no version was tried for this item's predicate."""
    tried = [a for a in h.attempts_of(item.name) if a.last_trial(item.done_when)]
    if not tried:
        return None
    accepted, why = _best_accepted(h, tried, item)
    if item.mode == "rl" and accepted:
        why = f"left to RL although v{accepted.version} is accepted"
        return VersionChosen(plan.revision, item.name, None, False, why)
    if accepted:
        return VersionChosen(plan.revision, item.name, accepted.version, True, why)
    partial, why = _best_partial(tried, item)
    if partial and item.mode == "rl" and (item.author == "operator" or item.pinned):
        partial, why = None, "left to RL by the operator"
    return VersionChosen(plan.revision, item.name, partial.version if partial else None, False, why)


def _best_accepted(h: History, tried: list[Attempt], item: Item) -> tuple[Attempt | None, str]:
    """The operator's newest accepted version, else the newest that is not clearly below an earlier one, in its trials
    or at its work in the plan."""
    uses = plan_uses(h, item) if len(tried) > 1 else {}
    best: Attempt | None = None
    bar = 0.0
    why = ""
    for attempt in tried:
        trial = attempt.accepting_trial(item.done_when)
        if trial is None:
            continue
        by_operator = attempt.author == "operator"
        share = f"{trial.successes} of {trial.episodes} trials"
        use = uses.get(attempt.source_hash)
        if best is None or by_operator:
            best = attempt
            why = f"the operator's version, accepted in {share}" if by_operator else f"accepted in {share}"
        elif best.author == "operator":
            continue
        elif trial.share < bar:
            why = f"{_earlier(why)}; v{attempt.version} is newer and did less in its trials: {share}"
        elif _worse(use, other := uses.get(best.source_hash)) and use and other:
            why = (
                f"{_earlier(why)}; v{attempt.version} is newer and did less in the plan: in {use.done} of {use.visits} "
                f"episodes, v{best.version} in {other.done} of {other.visits}"
            )
        else:
            best, why = attempt, f"the newest that was accepted, in {share}"
        bar = max(bar, _least(trial, use) - CLEAR_TRIAL_GAP)
    return best, why


def _least(trial: TrialState, use: PlanUse | None) -> float:
    """The smaller of a version's shares in its trials and in the plan: what was won in five trials is no reason to keep
    code that loses in the plan, and to let no newer version act there."""
    return min(trial.share, use.rate) if use and use.visits >= MIN_VISITS else trial.share


def _earlier(why: str) -> str:
    return why.partition(";")[0].replace("the newest that was ", "")


def _best_partial(tried: list[Attempt], item: Item) -> tuple[Attempt | None, str]:
    """The version that did its work most often, if that was at least sometimes: of those that were needed often enough
    to say that they failed, then of those that were needed too seldom to be accepted."""
    trials = [(attempt, trial) for attempt in tried if (trial := attempt.last_trial(item.done_when)) and trial.episodes]
    for outcomes, remark in ((("failed",), ""), (("unreached", "vacuous"), ", too few to accept it")):
        measured = [(a, t) for a, t in trials if t.outcome in outcomes and t.share >= MIN_PARTIAL_RATE]
        if measured:
            best, trial = max(reversed(measured), key=lambda pair: pair[1].share)  # the newest of equals
            why = f"none is accepted; this one did its work in {trial.successes} of {trial.episodes} trials{remark}"
            return best, why
    if not trials:
        state = "its trigger holds" if item.trigger else "the plan needs it"
        return None, f"no version was tried in a state in which {state}"
    return None, f"no version did its work in {MIN_PARTIAL_RATE:.0%} of its trials"


def plan_uses(h: History, item: Item) -> dict[str, PlanUse]:
    """Source hash -> how it did in the whole plan: a version with the same source has the same statistics. The last
    closed iteration that used the source counts."""
    sources = {attempt.version: attempt.source_hash for attempt in h.attempts_of(item.name)}
    uses: dict[str, PlanUse] = {}
    for iteration in h.iterations:
        if iteration.sub_task != h.sub_task or iteration.verdict is None:
            continue
        alone = [
            e for e in iteration.evaluations
            if e.split == "dev" and item.name in e.funnel and e.seq < iteration.verdict.seq
            and (e.variant == "plan" or (e.variant, e.policy) == ("full", "plan"))
        ]  # fmt: skip
        if not alone:
            continue
        plan = h.plans[alone[-1].revision]
        used, chosen = plan.item(item.name), plan.chosen.get(item.name)
        if used is None or used.done_when != item.done_when or chosen is None or chosen.version is None:
            continue
        alone = [e for e in alone if e.revision == plan.revision]
        visits = sum(e.episodes for e in alone)
        for before in reversed(plan.items[: plan.items.index(used)]):
            if before.name in alone[-1].funnel and plan.acts(before.name):
                visits = sum(e.funnel[before.name] for e in alone)
                break
        uses[sources[chosen.version]] = PlanUse(min(sum(e.funnel[item.name] for e in alone), visits), visits)
    return uses


def good_enough(h: History, plan: PlanState, item: Item, attempt: Attempt, target: float) -> bool:
    """Whether accepted code is left alone: neither its trials nor its work in the whole plan are significantly below
    what is needed. One lost episode in twenty says nothing, and a rewrite may lose what works."""
    trial, use = attempt.accepting_trial(item.done_when), plan_uses(h, item).get(attempt.source_hash)
    if trial and is_below(trial.successes, trial.episodes, GOOD_TRIAL_RATE):
        return False
    return use is None or use.visits < MIN_VISITS or not is_below(use.done, use.visits, required_rate(plan, target))


def goal_before(h: History, item: Item, versions: Sequence[Attempt]) -> str:
    """The goal for which the code of these versions was written, where the plan has changed it since: what an agent or
    the operator says there asks more of code that does its work. Empty where it has not, once a version for the new
    goal is accepted or an answer without code keeps what there is, and in another sub-task."""
    tried = [[a for a in drafts if a.trials] for drafts in rounds(versions)]
    answered = next((found for drafts in reversed(tried) if (found := _answer(drafts))), None)
    then = _item_then(h, item, answered) if answered else None
    return then.goal if then and not _same_goal(then, item) else ""


def is_kept(h: History, item: Item, best: Attempt, versions: Sequence[Attempt]) -> bool:
    """Whether an answer without code kept this accepted version, for the goal that it has now."""
    later = [a for a in versions if a.version > best.version]
    empty = [drafts[0] for drafts in rounds(later) if gave_up(drafts) and drafts[0].trials]
    return any((then := _item_then(h, item, a)) and _same_goal(then, item) for a in empty)


def _answer(drafts: Sequence[Attempt]) -> Attempt | None:
    """Of the drafts of an attempt, the one that settles what was asked: refused or failed ones do not, and one without
    code only where no other has any."""
    accepted = (a for a in drafts if any(trial.outcome == "accepted" for _, trial in a.trials))
    return next(accepted, drafts[0] if drafts and gave_up(drafts) else None)


def gave_up(drafts: Sequence[Attempt]) -> bool:
    """Whether an attempt brought code in none of its drafts."""
    return all(attempt.admission.get("rule") == NO_CODE for attempt in drafts)


def _item_then(h: History, item: Item, attempt: Attempt) -> Item | None:
    """The sub-action as it was when this version was first tried; None in another sub-task."""
    plan = h.plans.get(attempt.trials[0][1].revision)
    return plan.item(item.name) if plan and plan.sub_task == h.sub_task else None


def _same_goal(one: Item, other: Item) -> bool:
    return one.goal.split() == other.goal.split()


def is_below(done: int, of: int, needed: float) -> bool:
    """Whether so few successes are improbable (one-sided exact binomial test) if the true share were `needed`."""
    if done >= needed * of:
        return False
    return needed >= 1.0 or chance_of_at_most(done, of, needed) < SIGNIFICANT


def required_rate(plan: PlanState, target: float) -> float:
    """Share of the development episodes that came to a sub-action in which it must be done for its code to be left
    alone: what every one of them would have to reach for the whole plan to reach the target."""
    return round(float(target ** (1 / max(1, len(plan.steps)))), 3)


def _worse(use: PlanUse | None, other: PlanUse | None) -> bool:
    """Whether the first has the smaller share, by more than one standard error. The error is that of shares with one
    episode done and one lost added: without them 49 of 50 would be worse than 50 of 50."""
    if not use or not other or not use.visits or not other.visits:
        return False
    shares = [((u.done + 1) / (u.visits + 2), u.visits) for u in (use, other)]
    return other.rate - use.rate > sqrt(sum(share * (1 - share) / visits for share, visits in shares))


# ---- code that failed under other conditions -----------------------------------------------------
def retried(h: History, plan: PlanState, item: Item) -> Attempt | None:
    """Of a sub-action whose code failed, the version that did its work most often, the newest of equals, if it may do
    better now: a step before it has been rewritten since, so that trials begin in another state, or it ran out of
    `max_steps` and the plan has raised them since."""
    failed = _failed_trials(h, item)
    if not failed:
        return None
    best, trial = max(reversed(failed), key=lambda pair: pair[1].share)
    return best if _has_more_time(h, trial, item) or _rewritten_since_tried(h, plan, item) else None


def changing_before(h: History, plan: PlanState, item: Item, target: float) -> list[str]:
    """Of a sub-action whose code failed: the steps before it that have been rewritten since, or will be in the next
    iteration because they lose. Empty where its code did not fail, or where it is the operator's."""
    if item.pinned or item.author == "operator" or not _failed_trials(h, item):
        return []
    before = [(step, h.accepted(plan, step)) for step in plan.steps_before(item)]
    changing = {step.name for step, best in before if best and not good_enough(h, plan, step, best, target)}
    changing |= _rewritten_since_tried(h, plan, item)
    return [step.name for step, _ in before if step.name in changing]


def _last_trials(h: History, item: Item) -> list[tuple[Attempt, TrialState]]:
    return [(a, trial) for a in h.attempts_of(item.name) if (trial := a.last_trial(item.done_when))]


def _failed_trials(h: History, item: Item) -> list[tuple[Attempt, TrialState]]:
    """Of versions that failed when they were last tried; empty where one is accepted."""
    last = _last_trials(h, item)
    if any(attempt.accepting_trial(item.done_when) for attempt, _ in last):
        return []
    return [(attempt, trial) for attempt, trial in last if trial.outcome == "failed"]


def _has_more_time(h: History, trial: TrialState, item: Item) -> bool:
    """Whether a trial ran out of `max_steps` that the plan has raised since."""
    then = h.plans[trial.revision].item(item.name) if trial.revision in h.plans else None
    return "time" in trial.failed_by and then is not None and then.max_steps < item.max_steps


def _rewritten_since_tried(h: History, plan: PlanState, item: Item) -> set[str]:
    """The steps before it whose code is newer than its last trial."""
    tried = max(trial.seq for _, trial in _last_trials(h, item))
    acting = ((step.name, h.acting(plan, step)) for step in plan.steps_before(item))
    return {name for name, attempt in acting if attempt and attempt.seq > tried}
