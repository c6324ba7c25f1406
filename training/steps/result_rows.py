"""Builds the rows of trials, evaluations, episodes and verdicts: one function for each table."""

from __future__ import annotations

from collections.abc import Sequence

import zstandard

from rlgpt.agents import loop
from rlgpt.agents.contracts import CritiqueReply
from rlgpt.store import commands, tables
from rlgpt.store.history import Item, IterationState, Measured, PlanState
from rlgpt.training.options.lane import EpisodeResult
from rlgpt.training.rollouts.evaluation import EvaluationResult
from rlgpt.training.rollouts.trial_result import TrialOutcome, TrialResult


def untried(outcome: TrialOutcome, error: str) -> TrialResult:
    """The result of a trial of code that was not run."""
    return TrialResult(
        outcome=outcome, episodes=0, successes=0, prefixes=0, env_steps=0, error=error, trials=[], evidence={},
        views=[], moments=[],
    )  # fmt: skip


def trial_row(
    sub_task: int, plan: PlanState, item: Item, version: int, source_hash: str, result: TrialResult
) -> tables.Trial:
    return tables.Trial(
        sub_task=sub_task,
        iteration=plan.iteration,
        revision=plan.revision,
        sub_action=item.name,
        version=version,
        source_hash=source_hash,
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


def evaluation_row(
    number: int,
    step: loop.Evaluate,
    iteration: IterationState,
    revision: int,
    run: int | None,
    policy: str,
    result: EvaluationResult,
    score: float | None,
) -> tables.Evaluation:
    """`policy`: "ppo" or "plan"; `score`: where the result of the task is one."""
    measured = Measured(result.successes, len(result.episodes), score)
    return tables.Evaluation(
        sub_task=iteration.sub_task,
        iteration=iteration.number,
        revision=revision,
        number=number,
        split=step.split,
        variant=step.variant,
        first=step.first,
        episodes=len(result.episodes),
        successes=result.successes,
        ci_low=result.ci_low,
        ci_high=result.ci_high,
        return_mean=result.return_mean,
        length_mean=result.length_mean,
        dead_loops=result.dead_loops,
        env_steps=result.env_steps,
        run=run,
        policy=policy,
        funnel=result.funnel,
        milestones=result.milestones,
        option_usage=result.option_usage,
        end_reasons=result.end_reasons,
        rewards=result.rewards,
        score=score,
        score_low=None if score is None else measured.low,
        score_high=None if score is None else measured.high,
        option_steps=result.option_steps,
        option_done=result.option_done,
        failures=result.failures,
    )


def episode_rows(number: int, step: loop.Evaluate, result: EvaluationResult) -> list[tables.Episode]:
    """`number`: of the evaluation."""
    return [
        _episode_row(
            step.split,
            number,
            step.variant,
            episode,
            reached=result.reached(episode),
            actions=zstandard.compress(episode.commands) if episode.commands else None,
        )
        for episode in result.episodes
    ]


def training_episode_row(run: int, episode: EpisodeResult) -> tables.Episode:
    """The row of a training episode that was filmed."""
    return _episode_row("train", run, "", episode)


def _episode_row(
    split: str,
    owner: int,
    variant: str,
    episode: EpisodeResult,
    *,
    reached: Sequence[str] | None = None,
    actions: bytes | None = None,
) -> tables.Episode:
    return tables.Episode(
        split=split,
        owner=owner,
        variant=variant,
        index=episode.index,
        seed=episode.seed,
        success=episode.success,
        return_=episode.return_,
        env_steps=episode.env_steps,
        decisions=episode.decisions,
        dead_loop=episode.dead_loop,
        end=episode.end,
        milestones=list(episode.milestones),
        cause=episode.cause,
        vitals=dict(episode.vitals) or None,
        reached=reached,
        last=episode.last,
        actions=actions,
    )


def verdict_row(
    author: str,
    sub_task: int,
    iteration: int,
    revision: int,
    reply: CritiqueReply | commands.Verdict,
    measured: bool | None,
    *,
    sub_action: str | None = None,
    version: int | None = None,
    better: str = "",
) -> tables.Verdict:
    """On the last trial of a code version, or on the iteration."""
    return tables.Verdict(
        sub_task=sub_task,
        iteration=iteration,
        revision=revision,
        sub_action=sub_action,
        version=version,
        author=author,
        success=reply.success,
        confidence=reply.confidence,
        cause=reply.cause,
        advice_slow=reply.advice_slow,
        advice_fast=reply.advice_fast,
        measured=measured,
        better=better,
    )
