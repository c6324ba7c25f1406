"""TensorBoard event files: one folder a training run, and `evaluation` with success by iteration, of each later
sub-task, whose iterations are counted anew, in a folder of its own.

Steps are env steps, of evaluations iterations. Needs the extra `rlgpt[tensorboard]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rlgpt.store.atomic import new_folder
from rlgpt.store.errors import MissingExtra
from rlgpt.store.folder import Place
from rlgpt.store.history import History, Measured, pool
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import METRICS, EvaluationRow, MetricRow

COLUMNS = tuple(name for name in METRICS if name not in ("run", "update", "env_steps"))
MAPPINGS = ("option_usage", "rewards", "milestones")

Events = Iterable[tuple[float, int, Mapping[str, float]]]
"""(time, step, tag -> value)."""


def export_tensorboard(place: Place, target: Path) -> Path:
    """Write the folder `target`, whole or not at all; rows that a resume superseded are left out.

    Raises MissingExtra where tensorboardX is not installed.
    """
    with new_folder(target) as folder, Reader(place) as reader:
        history = reader.history_at()
        for number, run in history.runs.items():
            rows = (
                row
                for row in reader.rows(MetricRow, {"run": number})
                if not any(after < row["seq"] < before for after, before in run.hidden)
            )
            _write(folder / f"run-{number}", ((row["at"], row["env_steps"], _scalars(row)) for row in rows))
        at = {row["number"]: row["at"] for row in reader.rows(EvaluationRow, columns=["seq", "number", "at"])}
        for sub_task in range(history.sub_task + 1):
            name = f"evaluation-{sub_task}" if sub_task else "evaluation"
            _write(folder / name, _evaluations(history, sub_task, at))
    return target


def _evaluations(
    h: History, sub_task: int, at: Mapping[int, float]
) -> Iterator[tuple[float, int, Mapping[str, float]]]:
    """One point for each iteration and way to play: all episodes of what was evaluated last, also where they were
    played in parts. `at`: times by the number of an evaluation."""
    for iteration in h.iterations:
        if iteration.sub_task != sub_task:
            continue
        for split, variant in dict.fromkeys((e.split, e.variant) for e in iteration.evaluations):
            parts = h.parts(iteration, split, variant)
            result = pool(parts)
            if result.episodes:
                yield at[parts[-1].number], iteration.number, _result(f"{split}/{variant}", result)


def _result(name: str, result: Measured) -> dict[str, float]:
    return {f"{name}/{'success' if result.score is None else 'score'}": result.value}


def _scalars(row: MetricRow) -> dict[str, float]:
    columns: Mapping[str, object] = row
    scalars = {name: columns[name] for name in COLUMNS}
    if row["episodes"] and row["score"] is None:
        scalars["success_rate"] = row["successes"] / row["episodes"]
    for name in MAPPINGS:
        parts = columns[name]
        if isinstance(parts, dict):
            scalars |= {f"{name}/{key}": value for key, value in parts.items()}
    return {name: float(v) for name, v in scalars.items() if isinstance(v, (int, float))}


def _write(folder: Path, events: Events) -> None:
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise MissingExtra("tensorboard files need an extra: pip install 'rlgpt[tensorboard]'") from error
    folder.mkdir(mode=0o700)
    with SummaryWriter(str(folder)) as writer:
        for at, step, values in events:
            for tag, value in values.items():
                writer.add_scalar(tag, value, step, walltime=at)
    # tensorboardX ends the name with this machine's host name, which is nobody's business where the export goes.
    for number, file in enumerate(sorted(folder.iterdir())):
        file.chmod(0o600)
        file.rename(folder / f"events.out.tfevents.{number}.rlgpt")
