"""The inner loop: write code, try it, judge it."""

from __future__ import annotations

import sys

from rlgpt.agents import critic, fast, loop
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import CodeReply, CritiqueReply
from rlgpt.agents.errors import ModelUnavailable, UselessReply
from rlgpt.store import tables
from rlgpt.store.history import Attempt, History, Item
from rlgpt.store.row_types import tell_refusal
from rlgpt.training.rollouts import trials
from rlgpt.training.rollouts.partial_trial import PartialTrial
from rlgpt.training.rollouts.trial_result import TrialOutcome
from rlgpt.training.seeds import episode_seed
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.admission import admit_version
from rlgpt.training.steps.candidates import coded_action, first_action
from rlgpt.training.steps.leads import lead_to, refused_predicate
from rlgpt.training.steps.observer import StepObserver
from rlgpt.training.steps.outdated import outdated
from rlgpt.training.steps.probing import with_probes
from rlgpt.training.steps.result_rows import trial_row, untried, verdict_row
from rlgpt.training.worlds.optional_parts import is_slow
from rlgpt.training.worlds.protocol import World

AFFORDABLE_SHARE = 0.02
"""See `affordable_env_steps`."""


def code(runtime: SessionRuntime, step: loop.Code) -> None:
    """Write a version by the fast agent. Nothing is written where the operator has written code meanwhile, which is
    tried first, or has taken the sub-action out of the plan."""
    item = runtime.item(step.item)
    context = with_probes(runtime, runtime.context())
    why_empty = ""
    try:
        reply = runtime.ask(lambda: ask_fast(runtime.client, context, item, step))
    except UselessReply as error:
        why_empty = str(error)[:2000]
        reply = CodeReply(source="", note=why_empty)
    if outdated(runtime, step, step.item):
        return
    version = admit_version(
        runtime, item, reply.source, author="fast", attempt=step.attempt, draft=step.draft, note=reply.note,
        why_empty=why_empty,
    )  # fmt: skip
    with runtime.writer.transaction(durable=True) as tx:
        tx.add(version)
        if not version.admitted:
            admission = version.admission
            sentence = tell_refusal(admission["rule"], admission["line"], admission["message"])
            why = why_empty or f"refused by admission, {sentence}"
            tx.add(_untried(runtime, item, version.version, version.source_hash, "refused", why))


def trial(runtime: SessionRuntime, step: loop.Trial) -> None:
    item = runtime.item(step.item)
    attempt = _attempt(runtime.history, step.item, step.version)
    if error := refused_predicate(runtime, item):
        row = _untried(runtime, item, attempt.version, attempt.source_hash, "vacuous", error)
        with runtime.writer.transaction(durable=True) as tx:
            tx.add(row)
        return
    plan = runtime.history.plan
    assert plan is not None
    lead = lead_to(runtime, runtime.history, item)
    if lead.waits_for:
        error = f"waits for {', '.join(lead.waits_for)}, which is left to RL and not learnt yet"
        row = _untried(runtime, item, attempt.version, attempt.source_hash, "unreached", error)
        with runtime.writer.transaction(durable=True) as tx:
            tx.add(row)
        return
    actions = [*lead.actions, coded_action(runtime, attempt)]
    observer = StepObserver(runtime)
    partial = PartialTrial(runtime.folder.path, f"{plan.revision} {item.name} {attempt.version} {len(attempt.trials)}")
    result = trials.try_item(
        runtime.world,
        runtime.task,
        prefix=lead.prefix,
        action=first_action(attempt),
        done_when=item.done_when,
        sources={a.source_hash: a.source for a in actions},
        host=runtime.host,
        seeds=[episode_seed(runtime.seed, "trial", i) for i in range(trials.MAX_SEEDS_AFFORDABLE)],
        max_steps=item.max_steps,
        uninterruptible=frozenset(a.source_hash for a in actions if a.uninterruptible),
        incumbent=lead.incumbent,
        observer=observer,
        partial=partial,
        step_ms=runtime.settings.loop.step_ms,
        name=item.name,
        trigger=item.trigger,
        affordable=affordable_env_steps(runtime.world, runtime.settings.budget.env_steps),
    )
    with runtime.writer.transaction(durable=True) as tx:
        tx.add(trial_row(runtime.history.sub_task, plan, item, attempt.version, attempt.source_hash, result))
        runtime.write_moments(tx, "trial", runtime.history.counts.get("trial", 0) + 1, result.moments)
        runtime.write_deaths(tx)
    partial.clear()


def affordable_env_steps(world: World, budget: int | None) -> int:
    """How many env steps a trial may have taken and still use more seeds than usual: a share of the session's budget at
    its start, none in a slow world, where every prefix takes many seconds."""
    if is_slow(world):
        return 0
    return sys.maxsize if budget is None else int(AFFORDABLE_SHARE * budget)


def judge_item(runtime: SessionRuntime, step: loop.JudgeItem) -> None:
    item = runtime.item(step.item)
    context = runtime.context()
    try:
        reply = runtime.ask(lambda: ask_critic(runtime.client, context, item, step.version))
    except (UselessReply, ModelUnavailable) as error:
        reply = CritiqueReply(success=False, confidence=0.0, cause=str(error), advice_slow="", advice_fast="")
    if outdated(runtime, step, step.item):
        return
    with runtime.writer.transaction(durable=True) as tx:
        tx.add(critique_row(runtime.history, item, step.version, reply))


# ---- what is asked: in its turn, or ahead of it (ahead.py) -------------------------------------------
def ask_fast(client: Client, context: Context, item: Item, step: loop.Code) -> CodeReply:
    return fast.write(client, context, item, step.attempt, step.draft or 1)


def ask_critic(client: Client, context: Context, item: Item, version: int) -> CritiqueReply:
    trial = _attempt(context.history, item.name, version).trial
    assert trial is not None
    return critic.judge_item(client, context, item, trial.evidence, version)


def critique_row(history: History, item: Item, version: int, reply: CritiqueReply) -> tables.Verdict:
    plan, trial = history.plan, _attempt(history, item.name, version).trial
    assert plan is not None and trial is not None
    measured = trial.outcome == "accepted"
    return verdict_row(
        "critic", history.sub_task, plan.iteration, plan.revision, reply, measured,
        sub_action=item.name, version=version,
    )  # fmt: skip


def _attempt(history: History, name: str, version: int) -> Attempt:
    return next(a for a in history.attempts_of(name) if a.version == version)


def _untried(
    runtime: SessionRuntime, item: Item, version: int, source_hash: str, outcome: TrialOutcome, error: str
) -> tables.Trial:
    plan = runtime.history.plan
    assert plan is not None
    return trial_row(runtime.history.sub_task, plan, item, version, source_hash, untried(outcome, error))
