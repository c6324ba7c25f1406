"""TensorBoard event files: one folder a training run, and `evaluation` with success by iteration.

Steps are env steps. Needs the extra `rlgpt[tensorboard]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rlgpt.store.atomic import new_folder
from rlgpt.store.errors import MissingExtra
from rlgpt.store.folder import Place
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
        for number, run in reader.history_at().runs.items():
            rows = (
                row
                for row in reader.rows(MetricRow, {"run": number})
                if not any(after < row["seq"] < before for after, before in run.hidden)
            )
            _write(folder / f"run-{number}", ((row["at"], row["env_steps"], _scalars(row)) for row in rows))
        evaluations = (row for row in reader.rows(EvaluationRow) if row["episodes"])
        _write(folder / "evaluation", ((row["at"], row["iteration"], _result(row)) for row in evaluations))
    return target


def _result(row: EvaluationRow) -> dict[str, float]:
    name = f"{row['split']}/{row['variant']}"
    if row["score"] is not None:
        return {f"{name}/score": row["score"]}
    return {f"{name}/success": row["successes"] / row["episodes"]}


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
