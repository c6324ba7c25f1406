"""The inner loop: write code, try it, judge it."""

from __future__ import annotations

from rlgpt.agents import critic, fast, loop
from rlgpt.agents.choice import warm_start_source
from rlgpt.agents.contracts import CodeReply, CritiqueReply
from rlgpt.agents.errors import UselessReply
from rlgpt.store import tables
from rlgpt.store.history import Attempt, Item
from rlgpt.training import trials
from rlgpt.training.admitting import admit, admit_version
from rlgpt.training.halfway import Halfway
from rlgpt.training.live import Live
from rlgpt.training.policies import admitted_predicates, candidate, coded_action, first_action
from rlgpt.training.ppo.trained import TrainedPolicy, load_policy
from rlgpt.training.seeds import episode_seed
from rlgpt.training.watching import StepObserver


def code(live: Live, step: loop.Code) -> None:
    item = live.item(step.item)
    context = live.context()
    try:
        reply = live.ask(lambda: fast.write(live.client, context, item, step.attempt))
    except UselessReply as error:
        reply = CodeReply(source="", note=str(error)[:2000])
    version = admit_version(live, item, reply.source, author="fast", attempt=step.attempt, note=reply.note)
    with live.writer.transaction(durable=True) as tx:
        tx.add(version)
        if not version.admitted:
            told = version.admission
            why = f"refused by admission, rule {told['rule']}, line {told['line']}: {told['message']}"
            tx.add(_untried(live, item, version.version, version.source_hash, "refused", why))


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
    incumbent = _learnt(live) if any(i.mode == "rl" for i in before) else None
    if incumbent is None and (learnt := [i.name for i in before if i.mode == "rl"]):
        error = f"waits for {', '.join(learnt)}, which is left to RL and not learnt yet"
        row = _untried(live, item, attempt.version, attempt.source_hash, "unreached", error)
        with live.writer.transaction(durable=True) as tx:
            tx.add(row)
        return
    acting = {i.name: a for i in before if i.mode == "code" and (a := live.history.acting(plan, i))}
    actions = [coded_action(live, a) for a in (*acting.values(), attempt)]
    known = admitted_predicates(live, plan)
    prefix = [
        trials.PrefixItem(i.done_when, first_action(acting[i.name]) if i.name in acting else None)
        for i in before
        if i.name in acting or (i.mode == "rl" and i.name in known)
    ]
    observer = StepObserver(live)
    halfway = Halfway(live.folder.path, f"{plan.revision} {item.name} {attempt.version} {len(attempt.trials)}")
    result = trials.try_item(
        live.world,
        live.task,
        prefix=prefix,
        action=first_action(attempt),
        done_when=item.done_when,
        sources={a.source_hash: a.source for a in actions},
        host=live.host,
        seeds=[episode_seed(live.seed, "trial", i) for i in range(trials.MAX_SEEDS)],
        max_steps=item.max_steps,
        calm=frozenset(a.source_hash for a in actions if a.ignore_alarm),
        incumbent=incumbent,
        observer=observer,
        halfway=halfway,
        step_ms=live.settings.loop.step_ms,
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
                trials=result.trials,
                evidence=result.evidence,
            )
        )
        live.write_moments(tx, "trial", attempt.seq, observer.moments)
        live.write_deaths(tx)
    halfway.clear()


def judge_item(live: Live, step: loop.JudgeItem) -> None:
    item = live.item(step.item)
    attempt = _attempt(live, step.item, step.version)
    assert attempt.trial is not None
    context = live.context()
    evidence = attempt.trial.evidence
    try:
        reply = live.ask(lambda: critic.judge_item(live.client, context, item, evidence))
    except UselessReply as error:
        reply = CritiqueReply(success=False, confidence=0.0, cause=str(error), advice_slow="", advice_fast="")
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


def _learnt(live: Live) -> TrainedPolicy | None:
    best = warm_start_source(live.history)
    chosen = candidate(live, best) if best else None
    return load_policy(chosen.checkpoint, live.world) if chosen and chosen.checkpoint else None


def _untried(live: Live, item: Item, version: int, source_hash: str, outcome: str, error: str) -> tables.Trial:
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
