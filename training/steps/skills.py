"""The skill library at both ends of a session: what it may use, fixed at creation, and what it leaves behind."""

from __future__ import annotations

import time

from rlgpt.store import events, skills
from rlgpt.store.history import Attempt
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.steps.candidates import accepted_of


def keep_skills(runtime: SessionRuntime) -> None:
    """Keep what the incumbent's plan runs: coded actions accepted by measurement, each once."""
    history = runtime.history
    best = history.outcome
    if best is None or not best.plans or runtime.settings.skills == "none":
        return
    plan = history.plans[best.plans[-1]]
    for attempt in accepted_of(runtime, plan):
        skill = _skill(runtime, attempt)
        if skill is None:
            continue
        runtime.writer.event(events.SkillKept(attempt.sub_action, skills.keep(skill)))


def _skill(runtime: SessionRuntime, attempt: Attempt) -> skills.Skill | None:
    """Goal, predicate and measurement of the last trial that accepted the code: a later plan may want more of the same
    name, and have measured that this code does not do it. None for code that no trial accepted."""
    accepted = [(done_when, trial) for done_when, trial in attempt.trials if trial.outcome == "accepted"]
    if not accepted:
        return None
    done_when, trial = accepted[-1]
    plan = runtime.history.plans.get(trial.revision)
    goal = next((i.goal for i in plan.items if i.name == attempt.sub_action), "") if plan else ""
    return skills.Skill(
        name=attempt.sub_action,
        world=runtime.world.name,
        task=runtime.session_task,
        description=goal,
        source=runtime.source(attempt.source_hash),
        done_when=done_when,
        episodes=trial.episodes,
        successes=trial.successes,
        session_id=runtime.folder.id,
        kept_at=time.time(),
    )
