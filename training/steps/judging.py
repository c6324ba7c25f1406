"""Evaluations, the verdict that closes an iteration, and the end of the session."""

from __future__ import annotations

from rlgpt.agents import critic, loop
from rlgpt.agents.contracts import CritiqueReply, RlConfigReply
from rlgpt.agents.errors import BudgetReached, ModelUnavailable, UselessReply
from rlgpt.store import event_payloads, events
from rlgpt.store.row_types import EventRow
from rlgpt.store.states import SIGNALLED
from rlgpt.training.host.api import Action, PlanItem
from rlgpt.training.rollouts.evaluation import FollowPlan, Policy
from rlgpt.training.rollouts.evaluation import evaluate as play
from rlgpt.training.rollouts.script_bot import script_bot
from rlgpt.training.seeds import episode_seed, stream_seed
from rlgpt.training.session.runtime import Interrupted, SessionRuntime
from rlgpt.training.steps.admission import admit, admit_again
from rlgpt.training.steps.candidates import Candidate, candidate
from rlgpt.training.steps.commands import SIGNAL, expire
from rlgpt.training.steps.comparison import Comparison, measure
from rlgpt.training.steps.observer import StepObserver
from rlgpt.training.steps.outdated import outdated
from rlgpt.training.steps.result_rows import episode_rows, evaluation_row, verdict_row
from rlgpt.training.steps.skills import keep_skills
from rlgpt.training.worlds.optional_parts import score_of

CODED = ("plan", "script")
"""Variants that follow a plan even where the iteration's policy was learnt."""
LANES = 16
"""Envs played side by side; results do not depend on it."""


def evaluate(runtime: SessionRuntime, step: loop.Evaluate) -> None:
    history = runtime.history
    tested = history.outcome if step.split == "test" else None
    sub_task = tested.sub_task if tested else history.sub_task
    iterations = [i for i in history.iterations if (i.sub_task, i.number) == (sub_task, step.iteration)]
    iteration = iterations[-1]
    revision = None if step.split == "test" else history.revision
    chosen = candidate(runtime, iteration, revision)
    played = iteration.result.variant if step.split == "test" and iteration.result else "full"
    acting = "plan" if step.variant == "full" and played == "plan" else step.variant
    task = runtime.session_task if step.split == "test" else runtime.task
    seeds = [episode_seed(runtime.seed, step.split, i) for i in range(step.first, step.first + step.episodes)]
    observer = StepObserver(runtime)
    result = play(
        runtime.world,
        task,
        policy_of(runtime, chosen, acting),
        runtime.host,
        seeds,
        variant=step.variant,  # type: ignore[arg-type]
        greedy=played == "greedy" and step.variant in ("full", *loop.VARIANTS),
        predicates=chosen.predicates,
        option_predicates=chosen.option_predicates,
        record_actions=step.split == "test",
        observer=observer,
        first=step.first,
        n_envs=LANES,
        traced=step.split == "dev",
        names=chosen.names,
    )
    if not result.complete:
        raise Interrupted
    number = history.counts.get("evaluation", 0) + 1
    run = chosen.run.run if chosen.run else None
    policy = "ppo" if chosen.run is not None and acting not in CODED else "plan"
    score = score_of(runtime.world, runtime.world.tasks[runtime.session_task], result.milestones, len(result.episodes))
    with runtime.writer.transaction(durable=True) as tx:
        tx.add(evaluation_row(number, step, iteration, chosen.plan.revision, run, policy, result, score))
        for row in episode_rows(number, step, result):
            tx.add(row)
        runtime.write_moments(tx, step.split, number, result.moments)
        runtime.write_deaths(tx)


def policy_of(runtime: SessionRuntime, chosen: Candidate, variant: str) -> Policy:
    """The PPO policy of an iteration, or follow_plan where there is none.

    `plan`: follow_plan alone; `script`: the world's own script book; `prior`: a network with the priors of
    the iteration's actions, untrained; every other variant masks or samples the iteration's policy differently.
    """
    if variant == "script":
        return _script(runtime)
    if chosen.checkpoint is not None and variant != "plan":
        from rlgpt.training.ppo.trained import load_policy  # late: torch comes with it

        return load_policy(_untrained(runtime, chosen) if variant == "prior" else chosen.checkpoint, runtime.world)
    sources = {action.source_hash: action.source for action in chosen.actions}
    return FollowPlan(runtime.world, chosen.items, sources, options=chosen.actions, names=chosen.names)


def _script(runtime: SessionRuntime) -> FollowPlan:
    items: list[PlanItem] = []
    sources: dict[str, str] = {}
    for step in script_bot(runtime.world, runtime.session_task):
        admission = admit(runtime, "action", step.source)
        if admission.admitted and admit(runtime, "done_when", step.done_when).admitted:
            sources[step.source_hash] = step.source
            bound = tuple((name, values[0]) for name, values in admission.arguments.items())
            items.append(PlanItem(step.done_when, Action(step.source_hash, bound)))
    return FollowPlan(runtime.world, items, sources)


def _untrained(runtime: SessionRuntime, chosen: Candidate) -> bytes:
    """The checkpoint of the iteration's configuration after 0 env steps of PPO: its priors alone."""
    from rlgpt.training.ppo.run import train  # late: torch comes with it

    config = chosen.iteration.config
    assert config is not None
    reply = RlConfigReply.model_validate(dict(config.config))
    rewards = {term.argument: runtime.source(term.argument) for term in reply.reward if term.term == "generated"}
    for source in rewards.values():
        admit_again(runtime, "reward", source)
    return train(
        runtime.world,
        runtime.session_task,
        reply,
        chosen.actions,
        runtime.host,
        seed=stream_seed(runtime.seed, "prior"),
        device=runtime.settings.device,
        plan=chosen.items,
        sources=rewards | {action.source_hash: action.source for action in chosen.actions},
        env_steps=0,
    ).checkpoint


def judge_iteration(runtime: SessionRuntime, step: loop.JudgeIteration) -> None:
    """Write the verdict that closes the iteration. Nothing is written where the operator edited plan or code while the
    critic was asked: the edit is measured first."""
    comparison = measure(runtime)
    reply = _critique(runtime, step, comparison)
    if outdated(runtime, step):
        return
    iteration = runtime.history.iteration
    assert iteration is not None
    with runtime.writer.transaction(durable=True) as tx:
        tx.add(
            verdict_row(
                "critic",
                iteration.sub_task,
                iteration.number,
                runtime.history.revision,
                reply,
                comparison.reached,
                better=comparison.better,
            )
        )


def _critique(runtime: SessionRuntime, step: loop.JudgeIteration, comparison: Comparison) -> CritiqueReply:
    """The critic's verdict. Without a critic, or when it gave no usable answer: what was measured, and no advice."""
    context = runtime.context()
    why = "this session has no critic: measured only"
    if runtime.limits.critic != "none":
        try:
            return runtime.ask(
                lambda: critic.judge_iteration(runtime.client, context, step.iteration, comparison.difference)
            )
        except (UselessReply, ModelUnavailable, BudgetReached) as error:
            why = str(error)
    return CritiqueReply(success=comparison.reached, confidence=0.0, cause=why, advice_slow="", advice_fast="")


def end(runtime: SessionRuntime, step: loop.Done) -> None:
    """The last row: `ended`, once."""
    if runtime.history.status == "ended":
        return
    reason = SIGNALLED if step.status == "stopped" and _is_signalled(runtime) else step.reason
    keep_skills(runtime)
    expire(runtime)
    runtime.writer.event(events.Ended(status=step.status, reason=reason))
    runtime.progress.phase(f"ended: {reason}")


def _is_signalled(runtime: SessionRuntime) -> bool:
    """Whether a signal asked for the stop: the fold does not keep who did."""
    kind = event_payloads.kind_of(events.StopRequested)
    newest = runtime.reader.rows(EventRow, {"kind": kind}, newest_first=True, limit=1)
    return any(row["payload"]["author"] == SIGNAL for row in newest)
