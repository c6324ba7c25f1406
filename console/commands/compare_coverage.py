"""The coverage curve: test success over the share of env steps that code covers (`rlgpt experiment coverage`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from rlgpt.console.commands.compare_runs import runs_of
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.store.export.svg import Line
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import TrialRow

UNIT = "share of the env steps that code covers"
WHAT = "success of test episodes"
BANDS = 5
"""Parts of the axis, in each of which the line has the mean of the dots; nothing left out is one of its own."""
NAMES = {"rlgpt": "RL-GPT", "code": "code alone", "rl": "RL alone"}


class Point(NamedTuple):
    """The sessions of one arm with the same sub-actions left without code."""

    arm: str
    missing: int
    share: float
    success: float


def curves(readers: Sequence[Reader]) -> dict[str, list[Line]]:
    """What is drawn of each task: a dot for each set of sub-actions without code, a line through the means over the
    fifths of the axis. Raises Failure for sessions that are no coverage experiment."""
    tasks: dict[str, list[Reader]] = {}
    for reader in readers:
        tasks.setdefault(str(reader.history_at().session["task"]), []).append(reader)
    return {task: _lines(points(task, of_task)) for task, of_task in tasks.items()}


def points(task: str, readers: Sequence[Reader]) -> list[Point]:
    """Every set of every arm, over the sessions that were tested."""
    lengths = _lengths([r for r in readers if _method(r) == ("code", ())])
    if not lengths:
        raise Failure(
            f"no session of {task} has code for all of its sub-actions: --coverage needs the sessions of "
            "`rlgpt experiment coverage`.",
            Exit.USAGE,
        )
    whole = sum(lengths.values())
    groups: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    for reader in readers:
        arm, missing = _method(reader)
        for run in runs_of(reader, reader.history_at())[:1]:
            groups.setdefault((arm, tuple(lengths) if arm == "rl" else missing), []).append(run.score)
    return [
        Point(arm, len(missing), 1 - sum(lengths.get(name, 0.0) for name in missing) / whole, _mean(scores))
        for (arm, missing), scores in groups.items()
    ]


def _lines(of_task: Sequence[Point]) -> list[Line]:
    lines = []
    for arm, name in NAMES.items():
        of_arm = [point for point in of_task if point.arm == arm]
        bands: dict[int, list[Point]] = {}
        for point in of_arm:
            bands.setdefault(int(BANDS * point.share), []).append(point)
        means = [
            (_mean([point.share for point in bands[band]]), _mean([point.success for point in bands[band]]))
            for band in sorted(bands)
        ]
        if means:
            lines.append(Line(name, means, [(point.share, point.success) for point in of_arm]))
    return lines


def _lengths(readers: Sequence[Reader]) -> dict[str, float]:
    """Env steps that the code of each sub-action takes to do its work, mean over its trials and over sessions: of the
    newest version that did it at all; where none ever did, of all trials of the newest."""
    taken: dict[str, list[float]] = {}
    for reader in readers:
        mine: dict[str, list[float]] = {}
        for row in reader.rows(TrialRow):
            needed = [t for t in row["trials"] if t["arrived"] and not t["start_true"]]
            won = [float(t["env_steps"]) for t in needed if t["end_true"]]
            if won or (needed and row["sub_action"] not in mine):
                mine[row["sub_action"]] = won or [float(t["env_steps"]) for t in needed]
        for name, steps in mine.items():
            taken.setdefault(name, []).append(_mean(steps))
    return {name: _mean(steps) for name, steps in taken.items()}


def _method(reader: Reader) -> tuple[str, tuple[str, ...]]:
    method: Mapping[str, Any] = reader.history_at().session["settings"].get("method", {})
    return str(method.get("arm", "rlgpt")), tuple(method.get("uncoded", ()))


def _mean(values: Sequence[float]) -> float:
    return fmean(values)
