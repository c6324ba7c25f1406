"""The inner loop: write code, try it, judge it."""

from __future__ import annotations

from rlgpt.agents import critic, fast, loop
from rlgpt.store import tables
from rlgpt.store.history import Attempt, Item
from rlgpt.training import trials
from rlgpt.training.admitting import admit, admit_version
from rlgpt.training.host.api import Action, PlanItem
from rlgpt.training.live import Live
from rlgpt.training.policies import accepted_sources, incumbent_policy, options_of


def code(live: Live, step: loop.Code) -> None:
    item = live.item(step.item)
    context = live.context()
    reply = live.ask(lambda: fast.write(live.client, context, item, step.attempt))
    version = admit_version(live, item, reply.source, author="fast", attempt=step.attempt, note=reply.note)
    with live.writer.transaction(durable=True) as tx:
        tx.add(version)
        if not version.admitted:
            told = version.admission
            error = f"refused by admission, rule {told['rule']}, line {told['line']}: {told['message']}"
            tx.add(_untried(live, item, version.version, version.source_hash, "refused", error))


def trial(live: Live, step: loop.Trial) -> None:
    item = live.item(step.item)
    attempt = _attempt(live, step.item, step.version)
    predicate = admit(live, "done_when", item.done_when)
    if not predicate.admitted:
        error = f"done_when was refused, rule {predicate.rule}: {predicate.message}"
        row = _untried(live, item, attempt.version, attempt.source_hash, "vacuous", error)
        with live.writer.transaction(durable=True) as tx:
            tx.add(row)
        return
    plan = live.history.plan
    assert plan is not None
    before = plan.items[: [i.name for i in plan.items].index(item.name)]
    waits_for = [i.name for i in before if i.mode == "rl"]
    incumbent = incumbent_policy(live) if waits_for else None
    if waits_for and incumbent is None:
        error = f"waits for {', '.join(waits_for)}, which is left to RL and not learnt yet"
        row = _untried(live, item, attempt.version, attempt.source_hash, "unreached", error)
        with live.writer.transaction(durable=True) as tx:
            tx.add(row)
        return
    accepted = [(i, a) for i in before if i.mode == "code" and (a := live.history.accepted(i))]
    result = trials.try_item(
        live.world,
        live.task,
        prefix=[PlanItem(i.done_when, _first_action(a)) for i, a in accepted],
        incumbent=incumbent,
        incumbent_until=[i.done_when for i in before if i.mode == "rl"],
        action=_first_action(attempt),
        sources=accepted_sources(live, [a for _, a in accepted] + [attempt]),
        done_when=item.done_when,
        host=live.host,
        session_seed=live.seed,
        max_steps=item.max_steps,
        observer=live.observer(),
    )
    with live.writer.transaction(durable=True) as tx:
        tx.add(
            tables.Trial(
                sub_task=live.history.sub_task,
                iteration=plan.iteration,
                revision=plan.revision,
                sub_action=item.name,
                version=attempt.version,
                source_hash=attempt.source_hash,
                done_when=item.done_when,
                outcome=result.outcome,
                episodes=result.episodes,
                successes=result.successes,
                prefixes=result.prefixes,
                env_steps=result.env_steps,
                error=result.error,
                trials=[t.plain() for t in result.trials],
                evidence=result.evidence,
            )
        )
        live.write_frames(tx, "trial", attempt.version, result.frames)
        live.write_deaths(tx)


def judge_item(live: Live, step: loop.JudgeItem) -> None:
    item = live.item(step.item)
    attempt = _attempt(live, step.item, step.version)
    assert attempt.trial is not None
    context = live.context()
    evidence = attempt.trial.evidence
    reply = live.ask(lambda: critic.judge_item(live.client, context, item, evidence))
    plan = live.history.plan
    assert plan is not None
    with live.writer.transaction(durable=True) as tx:
        tx.add(
            tables.Verdict(
                sub_task=live.history.sub_task,
                iteration=plan.iteration,
                revision=plan.revision,
                sub_action=item.name,
                version=attempt.version,
                author="critic",
                measured=attempt.trial.outcome == "accepted",
                better="",
                **reply.model_dump(),
            )
        )


def _attempt(live: Live, name: str, version: int) -> Attempt:
    return next(a for a in live.history.attempts_of(name) if a.version == version)


def _first_action(attempt: Attempt) -> Action:
    """A coded action as its plan runs it: with the first value of each Literal argument."""
    return options_of(attempt)[0]


def _untried(
    live: Live, item: Item, version: int, source_hash: str, outcome: str, error: str
) -> tables.Trial:
    plan = live.history.plan
    assert plan is not None
    return tables.Trial(
        sub_task=live.history.sub_task,
        iteration=plan.iteration,
        revision=plan.revision,
        sub_action=item.name,
        version=version,
        source_hash=source_hash,
        done_when=item.done_when,
        outcome=outcome,
        episodes=0,
        successes=0,
        prefixes=0,
        env_steps=0,
        error=error,
    )
