"""One line for each thing that happens in a session, for logs and terminals without a console. Pure."""

from __future__ import annotations

from rlgpt.console.view.happenings import sentence
from rlgpt.console.view.numbers import count, rate
from rlgpt.store.history import History
from rlgpt.store.row_types import Change, MetricRow

EVERY_ENV_STEPS = 5_000
"""Training is told at most once in so many env steps."""


class Progress:
    """Remembers the last reported update, so that training does not flood the log."""

    def __init__(self) -> None:
        self._last_reported = (0, -EVERY_ENV_STEPS)

    def sentence(self, h: History, change: Change) -> str:
        """The line for a row that was just folded into `h`; empty for rows that are not reported."""
        return self._metric(h, change[1]) if change[0] == "metric" else sentence(change)

    def _metric(self, h: History, row: MetricRow) -> str:
        run, env_steps = self._last_reported
        if row["run"] == run and row["env_steps"] - env_steps < EVERY_ENV_STEPS:
            return ""
        self._last_reported = (row["run"], row["env_steps"])
        planned = h.runs[row["run"]].env_steps_planned
        shown = f"PPO run {row['run']}: {count(row['env_steps'])} of {count(planned)} env steps"
        scored = h.session.get("task_info", {}).get("kind") == "score"
        if scored and row["return_mean"] is not None:
            shown += f", return {row['return_mean']:.2f} an episode"
        elif row["episodes"] and not scored:
            shown += f", training success {rate(row['successes'], row['episodes'], interval=False)}"
        if row["rate"]:
            shown += f", {count(row['rate'])} env steps/s"
        return shown
