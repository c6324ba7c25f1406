"""What the trials of a sub-action amount to: an outcome, its reason, and the evidence to show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rlgpt.store.failures import choose
from rlgpt.training.options.film import FrameSnapshot
from rlgpt.training.rollouts.evidence import Describer, difference

TrialOutcome = Literal["accepted", "failed", "unreached", "vacuous", "stopped", "refused"]
MIN_TRIALS = 3
"""Trials below which nothing is said about the item: a long chain rarely arrives, and that is no failure of its."""
ACCEPT_RATE = 0.6
"""Share of successful trials from which a version is accepted."""
SHOWN_LOST = 3
"""Failed trials of which it is kept how they went."""
TRUNCATED = "truncated"


@dataclass(frozen=True)
class TrialEpisode:
    """One trial, as the trial row lists it."""

    seed: int
    arrived: bool
    start_true: bool
    end_true: bool
    env_steps: int
    """Of the item alone."""
    end: str
    """done | time | death | truncated | idle | prefix | already done, or the fault that ended it."""
    message: str
    cause: str = ""
    """What killed the agent in it, where the world told it."""

    @property
    def needed(self) -> bool:
        """Whether it says something about the item: it began where the plan needs it, and the world let it end."""
        return self.arrived and not self.start_true and self.end != TRUNCATED

    @property
    def won(self) -> bool:
        return self.needed and self.end_true

    @property
    def kind(self) -> Literal["won", "failed", "not reached", "not needed"]:
        if self.needed:
            return "won" if self.won else "failed"
        return "not needed" if self.arrived else "not reached"


@dataclass(frozen=True)
class TrialResult:
    outcome: TrialOutcome
    episodes: int
    """Trials whose prefix arrived where the item is needed."""
    successes: int
    prefixes: int
    """Trials started."""
    env_steps: int
    """Prefixes included."""
    error: str
    """The first fault's message, or why nothing was measured."""
    trials: list[dict[str, Any]]
    evidence: dict[str, Any]
    """{good, bad, lost}: one trial that ended well and one that did not, each {before, after, difference, yields, end,
    message} or None; and how some of the failed ones went."""
    views: list[bytes]
    """Whole views of the start states."""
    moments: list[FrameSnapshot]
    """The first trial that succeeded and the first that failed, frame by frame, where the observer films; of those that
    failed rather one that got to the sub-action. Where it was never needed, the first trial."""


@dataclass(frozen=True)
class FinishedTrial:
    """One trial with what is needed to tell how it went."""

    episode: TrialEpisode
    before: bytes
    """The whole view where the item began; empty if the prefix did not arrive."""
    after: bytes
    yields: list[str]
    """The primitives that the item yielded."""
    lost: dict[str, Any] | None
    """How it went, where it failed (`store/failures.py`)."""


def judge_trials(
    episodes: Sequence[TrialEpisode], ms_per_step: float, step_ms: float, triggered: bool = False
) -> tuple[TrialOutcome, str]:
    """The outcome of trials that were not stopped, and why. `ms_per_step`: CPU time that the item took per env step,
    `step_ms` at most. `triggered`: they began where a trigger held."""
    arrived = sum(e.arrived and e.end != TRUNCATED for e in episodes)
    needed = [e for e in episodes if e.needed]
    if len(needed) < min(MIN_TRIALS, len(episodes)) or not episodes:
        if arrived >= MIN_TRIALS and 2 * len(needed) < arrived:
            states = "states in which its trigger holds" if triggered else "start states"
            error = f"done_when was already true in {arrived - len(needed)} of {arrived} {states}"
            if triggered:
                error += ": either the trigger holds where there is nothing to do, or done_when is true too early"
            return "vacuous", error
        reason = f"only {len(needed)} of {len(episodes)} trials reached a state in which "
        reason += "its trigger holds" if triggered else "the plan needs it"
        if cut := sum(e.end == TRUNCATED for e in episodes):
            reason += f"; the world broke {cut} of them off"
        return "unreached", reason
    if ms_per_step > step_ms:
        return "failed", (
            f"it takes about {_rounded(ms_per_step):g} ms of computing per env step; at most {step_ms:g} ms. "
            "Work on less data at once: no long lists, texts or numbers"
        )
    accepted = sum(e.won for e in needed) >= ACCEPT_RATE * len(needed)
    return "accepted" if accepted else "failed", next((e.message for e in needed if e.message), "")


def _rounded(number: float) -> float:
    """To one digit: more would differ from run to run."""
    return round(number, -math.floor(math.log10(number)))


def gather_evidence(trials: Sequence[FinishedTrial], describe: Describer) -> dict[str, Any]:
    """`TrialResult.evidence`."""
    good = next((t for t in trials if t.episode.won), None)
    bad = next((t for t in trials if t.episode.needed and not t.episode.won), None)
    lost = choose([t.lost for t in trials if t.lost], SHOWN_LOST)
    return {"good": _shown(good, describe), "bad": _shown(bad, describe), "lost": lost}


def _shown(trial: FinishedTrial | None, describe: Describer) -> dict[str, Any] | None:
    if trial is None:
        return None
    before, after = describe(trial.before), describe(trial.after)
    return {
        "before": before,
        "after": after,
        "difference": difference(before, after),
        "yields": run_lengths(trial.yields),
        "end": trial.episode.end,
        "message": trial.episode.message,
    }


def run_lengths(names: Sequence[str], limit: int = 60) -> list[str]:
    """`["left", "left", "do"]` -> `["left x2", "do"]`; the middle of a long list is left out."""
    runs: list[list[Any]] = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1][1] += 1
        else:
            runs.append([name, 1])
    texts = [name if count == 1 else f"{name} x{count}" for name, count in runs]
    if len(texts) <= limit:
        return texts
    half = limit // 2
    return [*texts[:half], f"... {len(texts) - 2 * half} more ...", *texts[-half:]]
