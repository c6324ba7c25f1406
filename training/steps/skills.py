"""The skill library at both ends of a session: what it may use, fixed at creation, and what it leaves behind."""

from __future__ import annotations

import time

from rlgpt.store import skills
from rlgpt.store.history import Attempt
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.candidates import accepted_of


def keep_skills(runtime: SessionRuntime) -> None:
    """Keep what the incumbent's plan runs: coded actions accepted by measurement, each once."""
    history = runtime.history
    best = history.incumbent
    if best is None or not best.plans or runtime.settings.skills == "none":
        return
    plan = history.plans[best.plans[-1]]
    for attempt in accepted_of(runtime, plan):
        if attempt.author == "skill":
            continue
        name = skills.keep(_skill(runtime, attempt))
        runtime.writer.event("skill_kept", name=attempt.sub_action, hash=name)


def _skill(runtime: SessionRuntime, attempt: Attempt) -> skills.Skill:
    assert attempt.trial is not None
    goals = [i.goal for plan in runtime.history.plans.values() for i in plan.items if i.name == attempt.sub_action]
    return skills.Skill(
        name=attempt.sub_action,
        world=runtime.world.name,
        task=runtime.session_task,
        description=goals[-1] if goals else "",
        source=runtime.source(attempt.source_hash),
        done_when=attempt.done_when,
        episodes=attempt.trial.episodes,
        successes=attempt.trial.successes,
        session_id=runtime.folder.id,
        kept_at=time.time(),
    )
