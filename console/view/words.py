"""The product's words for states, models and phases, with the style each is shown in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlgpt.console.view.moment import Moment  # late: it brings numpy

RULES = "rule-based model"

PHASES = {
    "PlanTasks": "ordering sub-tasks", "OpenIteration": "opening an iteration", "Plan": "planning", "Code": "coding",
    "Trial": "in trials", "JudgeItem": "judging", "Configure": "configuring RL", "Train": "training",
    "Evaluate": "evaluating", "JudgeIteration": "judging", "Wait": "waiting", "Done": "ending",
}  # fmt: skip
"""The loop's steps, as phases are called in rows."""

VERDICT = "your verdict on "
BOUNDS = {"Train": 90.0, "Trial": 90.0, "Evaluate": 90.0}
"""Seconds without progress after which a phase counts as hung; LLM phases have their own time-out and retries."""
DEFAULT_BOUND = 300.0


def decision_words(decision: str) -> str:
    """A decision as it is shown. The steps of a script that is measured beside the plan may have numbers for names."""
    place = decision.removeprefix("item_")
    return f"step {int(place) + 1} of the script" if place != decision and place.isdecimal() else decision


def model_name(settings: Mapping[str, Any]) -> str:
    """How a session's model is called on screen. The rule-based model is never called an LLM."""
    llm = settings.get("llm", {})
    kind = str(llm.get("kind", "rules"))
    if kind == "rules":
        return RULES
    if kind.startswith("replay:"):
        return f"replayed replies of {kind[7:]}"
    return str(llm.get("model", kind))


def bound(phase: str, settings: Mapping[str, Any]) -> float:
    """Seconds of silence that a phase may take."""
    if phase in BOUNDS:
        return BOUNDS[phase]
    timeout = float(settings.get("llm", {}).get("timeout", 120.0) or 120.0)
    return max(DEFAULT_BOUND, 2 * timeout)


def silence(moment: Moment) -> float:
    """Seconds without progress of a hung worker, as `Watch` measured them: the wall clock may have jumped."""
    settings = moment.history.session.get("settings", {})
    return bound(moment.history.phase.name, settings) + moment.worker.overdue


def state_of(moment: Moment) -> tuple[str, str]:
    """(word, style) of the session at a moment: what it does, or how it ended, died or hangs."""
    h = moment.history
    if h.status == "ended":
        return h.result or "ended", {"succeeded": "ok", "finished": "ok", "stopped": "warn", "failed": "bad"}.get(
            h.result, ""
        )
    if moment.live and not moment.worker.alive:
        return ("dead", "bad") if h.status != "created" else ("not started", "dim")
    if moment.live and moment.worker.overdue > 0:
        return "hung", "bad"
    if h.status == "paused":
        return "paused", "warn"
    if h.status == "waiting":
        return waiting_word(h.waiting_for), "warn"
    phase = h.phase.name
    return PHASES.get(phase, phase or ("starting" if h.status == "created" else h.status)), "accent"


def waiting_word(reason: str) -> str:
    """`reason` is what the worker says it waits for (`training/steps/waiting.py`, a training slot)."""
    short = {"approval": "approval", "verdict": "your verdict"}.get(needed_from_person(reason), reason)
    return f"waits for {short}" if short else "waiting"


def needed_from_person(reason: str) -> str:
    """What a person must give so that the session goes on: `approval`, `verdict` or nothing ("")."""
    if reason.startswith("approval of "):
        return "approval"
    return "verdict" if reason.startswith(VERDICT) else ""


def judged(reason: str) -> str:
    """What the verdict of a person is about: a sub-action, or "the iteration"."""
    return reason.removeprefix(VERDICT) if reason.startswith(VERDICT) else ""


def nothing(what: str, ended: bool, promise: str = "") -> str:
    """What a pane says that has nothing to show. `promise`, a sentence: when something comes; a session that has ended
    promises nothing."""
    if ended:
        return f"{what} in this session."
    return f"{what} yet: {promise}" if promise else f"{what} yet."


def unplanned(ended: bool) -> str:
    return "The slow agent did not plan." if ended else "The slow agent has not planned yet."


ROLES = {"planner": "task planner", "slow": "slow agent", "fast": "fast agent", "critic": "critic"}


def asked_for(step: str) -> tuple[str, str]:
    """(what a call was for, the sub-action it is about or "") by its step's key, such as `write/0.1/fight/3`."""
    ask, *rest = step.split("/")
    if ask == "write" and len(rest) == 3:
        return f"writes v{rest[2]} of ", rest[1]
    if ask == "judge_item" and len(rest) == 2:
        return f"judges v{rest[1]} of ", rest[0]
    if ask == "configure" and len(rest) >= 2:
        return f"configures RL for plan {rest[1]}" + (", again" if rest[2:] else ""), ""
    words = {
        "order": "orders the sub-tasks",
        "plan": "plans the sub-actions",
        "refine": "splits what failed as code",
        "judge_iteration": "judges the iteration",
    }
    return words.get(ask, step), ""


OUTCOMES = {
    "accepted": ("✓", "ok"), "failed": ("✗", "bad"), "unreached": ("◌", "warn"), "refused": ("⊘", "bad"),
    "vacuous": ("∅", "warn"),
}  # fmt: skip
"""Glyph and style of a trial's outcome."""

NO_CODE = "empty"
"""Admission's rule for an answer without code: the agent has nothing better to offer."""
ACTS = {"full": "", "plan": " (code alone)", "greedy": " (greedy policy)"}
"""What acts of an iteration, by `IterationResult.variant`."""
ACTING = {"full": "what was evaluated", "plan": "code alone", "greedy": "greedy policy"}
ENDS = {
    "episode": "the agent died", "death": "the agent died", "time": "step limit", "return": "the code returned",
    "error": "the code failed", "success": "the task was done", "truncated": "the world broke off",
    "bad_yield": "the code yielded what is no action", "budget": "the code computed too long",
    "killed": "the code was stopped", "quarantined": "the code had been stopped before",
}  # fmt: skip
"""How a trial ended, in words."""
ENDED = {
    "death": "died", "episode": "died", "time": "step limit", "truncated": "broken off", "idle": "did nothing",
    "prefix": "never got there", "already done": "not needed", "done": "done", "error": "code failed",
    "bad_yield": "no action", "budget": "computed too long", "killed": "code stopped", "quarantined": "code stopped",
}  # fmt: skip
"""How an episode ended that nothing is known to have killed, in a word or two."""
CALL_ENDS = {
    "return": "returned", "cap": "call limit", "alarm": "interrupted", "success": "task done", "time": "episode over",
    "episode": "episode over",
    "death": "died", "truncated": "broken off", "error": "code failed", "bad_yield": "no action",
    "budget": "computed too long", "killed": "code stopped", "quarantined": "stopped before",
}  # fmt: skip
"""How a call of a coded action ended, by the word of its row."""
VARIANTS = {
    "full": "session's policy", "plan": "code alone", "greedy": "greedy policy", "sampled": "sampled",
    "options_off": "without coded actions", "primitives_off": "coded actions only",
}  # fmt: skip
"""How an evaluation plays, by `EvaluationState.variant`."""
PLAN_STATUS = {"in_force": "active", "waiting": "waits for approval"}
"""States of a plan whose words are not their names."""


def author(name: str) -> str:
    """Who wrote a plan: an agent of ours or a person."""
    return "slow agent" if name in ("slow", "refine") else name
