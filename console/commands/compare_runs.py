"""Sessions as a comparison sees them: what each scored on its test seeds, and what its controls scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlgpt.console.commands import record
from rlgpt.store.history import History
from rlgpt.store.reader import Reader
from rlgpt.store.score import score

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

    @property
    def score(self) -> float:
        """What arms are compared by: the score of such a task, else the success rate."""
        return self.successes / self.episodes if self.score_test is None else self.score_test


def labelled(trees: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all sessions belong to arms that an experiment has named."""
    return bool(trees) and all(tree.get("method", {}).get("label") for tree in trees)


def runs_of(reader: Reader, arm: str) -> list[Run]:
    """The session's own run, then its controls; nothing for a session that was not tested."""
    history = reader.history_at()
    whole = record.whole(history)
    test = whole["test"]
    if not test:
        return []
    points = _scores(reader, history)
    names = ("options_off", "primitives_off")
    off: dict[str, Any] = {name: test[name]["rate"] if test[name] else None for name in names}
    off |= {name: points[name] for name in names if name in points}
    common: dict[str, Any] = {"id": whole["id"], "task": whole["task"], "seed": whole["seed"]}
    own = Run(
        arm=arm,
        env_steps=whole["env_steps"],
        usd=whole["cost"]["usd"],
        **common,
        **_counted(test),
        **off,
        score_test=points.get("full"),
        score_train=points.get("train"),
    )
    controls = history.session["settings"].get("method", {}).get("controls", ())
    return [own] + [
        Run(
            arm=f"{arm}: {name}",
            env_steps=0,
            usd=None,
            **common,
            **_counted(test[name]),
            options_off=None,
            primitives_off=None,
            score_test=points.get(name),
        )
        for name in controls
        if test.get(name)
    ]


def _counted(test: Mapping[str, Any]) -> dict[str, Any]:
    return {name: test[name] for name in ("successes", "episodes", "dead_loops")}


def _scores(reader: Reader, history: History) -> dict[str, float]:
    """Variant -> score of its test episodes, and `train`; empty for a task that succeeds or fails."""
    info = history.session.get("task_info", {})
    if info.get("kind") != "score":
        return {}
    names = info["milestones"]
    tests = reader.rows("evaluation", {"split": "test"})
    found = {row["variant"]: score(row["milestones"], row["episodes"], names) for row in tests}
    reached: dict[str, int] = {}
    episodes = before = 0
    for number, run in sorted(history.runs.items()):
        for row in reader.rows("metric", {"run": number}, columns=["seq", "env_steps", "episodes", "milestones"]):
            hidden = any(first < row["seq"] < last for first, last in run.hidden)
            if hidden or before + row["env_steps"] > TRAIN_SCORE_STEPS:
                continue
            episodes += row["episodes"]
            for name, count in row["milestones"].items():
                reached[name] = reached.get(name, 0) + count
        before += run.env_steps
    return found | ({"train": score(reached, episodes, names)} if episodes else {})
