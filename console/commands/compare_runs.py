"""Sessions as a comparison sees them: what each scored on its test seeds, and what its controls scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlgpt.console.commands import record
from rlgpt.store.history import History
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import MetricRow

TRAIN_SCORE_STEPS = 1_000_000
"""Crafter's score_train counts the training episodes of so many env steps."""


@dataclass(frozen=True)
class Run:
    """One session, or one control tested on its seeds."""

    id: str
    task: str
    arm: str
    seed: int
    successes: int
    episodes: int
    dead_loops: int
    env_steps: int
    usd: float | None
    options_off: float | None
    primitives_off: float | None
    score_test: float | None = None
    """In percent, for a task whose result is a score."""
    score_train: float | None = None
    chosen: bool = False
    """Of a control `plan`: PPO was trained, and the code alone did best in development, so that the session's own test
    is the control's."""

    @property
    def score(self) -> float:
        """What arms are compared by: the score of such a task, else the success rate."""
        return self.successes / self.episodes if self.score_test is None else self.score_test


def runs_of(reader: Reader, history: History) -> list[Run]:
    """The session's own run, then its controls; nothing for a session that was not tested. Their arms are to be named
    with `of_arm`: how, only all the sessions of a comparison can say."""
    whole = record.whole(history)
    test = whole["test"]
    if not test:
        return []
    off: dict[str, Any] = {name: _result(test[name]) for name in ("options_off", "primitives_off")}
    common: dict[str, Any] = {"id": whole["id"], "task": whole["task"], "seed": whole["seed"]}
    own = Run(
        arm="",
        env_steps=whole["env_steps"],
        usd=whole["cost"]["usd"],
        **common,
        **_counted(test),
        **off,
        score_train=_score_train(reader, history),
    )
    controls = history.session["settings"].get("method", {}).get("controls", ())
    chose_plan = bool(history.runs) and test["policy"] == "plan" and not test.get("plan")
    if chose_plan:
        test = {**test, "plan": test}
    return [own] + [
        Run(
            arm=f": {name}",
            env_steps=0,
            usd=None,
            **common,
            **_counted(test[name]),
            options_off=None,
            primitives_off=None,
            chosen=name == "plan" and chose_plan,
        )
        for name in controls
        if test.get(name)
    ]


def of_arm(runs: Sequence[Run], arm: str) -> list[Run]:
    return [replace(run, arm=arm + run.arm) for run in runs]


def compared(runs: Sequence[Run]) -> list[Run]:
    """Without the controls that no session of their arm has played. Where one has, those of the sessions that chose
    their plan stay: else the pairs would be the sessions alone in which learning paid."""
    played = {(run.task, run.arm) for run in runs if not run.chosen}
    return [run for run in runs if (run.task, run.arm) in played]


def _counted(test: Mapping[str, Any]) -> dict[str, Any]:
    counted = {name: test[name] for name in ("successes", "episodes", "dead_loops")}
    return counted | {"score_test": _percent(test["score"])}


def _percent(score: float | None) -> float | None:
    return None if score is None else 100 * score


def _result(part: Mapping[str, Any] | None) -> float | None:
    """A share of episodes, or a score in percent."""
    if not part:
        return None
    percentage: float | None = part["rate"] if part["score"] is None else _percent(part["score"])
    return percentage


def _score_train(reader: Reader, history: History) -> float | None:
    """In percent, over the training episodes of the first million env steps; None for a task without a score."""
    value: float | None = None
    before = 0
    for number, run in sorted(history.runs.items()):
        for row in reader.rows(MetricRow, {"run": number}, columns=["seq", "env_steps", "score"]):
            hidden = any(first < row["seq"] < last for first, last in run.hidden)
            if not hidden and before + row["env_steps"] <= TRAIN_SCORE_STEPS and row["score"] is not None:
                value = row["score"]
        before += run.env_steps
    return _percent(value)
