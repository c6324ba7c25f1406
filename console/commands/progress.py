"""One line for each thing that happens in a session, for logs and terminals without a console. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlgpt.console.view.numbers import count, rate
from rlgpt.store.history import History

Row = Mapping[str, Any]
EVERY_ENV_STEPS = 5_000
"""Training is told at most once in so many env steps."""


class Progress:
    """Remembers what was told last, so that training does not flood the log."""

    def __init__(self) -> None:
        self._told = (0, -EVERY_ENV_STEPS)

    def sentence(self, h: History, table: str, row: Row) -> str:
        """The line for a row that was just folded into `h`; empty for rows nobody waits for."""
        if table == "event":
            return _event(row["kind"], row["payload"])
        if table == "metric":
            return self._metric(h, row)
        tell = _TABLES.get(table)
        return tell(row) if tell else ""

    def _metric(self, h: History, row: Row) -> str:
        run, env_steps = self._told
        if row["run"] == run and row["env_steps"] - env_steps < EVERY_ENV_STEPS:
            return ""
        self._told = (row["run"], row["env_steps"])
        planned = h.runs[row["run"]].env_steps_planned
        shown = f"PPO run {row['run']}: {count(row['env_steps'])} of {count(planned)} env steps"
        if row["episodes"]:
            shown += f", training success {rate(row['successes'], row['episodes'], interval=False)}"
        if row["rate"]:
            shown += f", {count(row['rate'])} env steps/s"
        return shown


def _event(kind: str, p: Row) -> str:
    match kind:
        case "started":
            return "started"
        case "resumed":
            return f"resumed after row {p['from_seq']}: {p.get('cause', 'the worker had ended')}"
        case "plan_in_force":
            return f"plan revision {p['revision']} is in force"
        case "plan_waiting":
            return f"plan revision {p['revision']} waits for approval"
        case "plan_rejected":
            return f"plan revision {p['revision']} was rejected by {p['author']}"
        case "training_ended":
            why = f": {p['reason']}" if p.get("reason") else ""
            return f"PPO run {p['run']} {p['state']} after {count(p['env_steps'])} env steps{why}"
        case "command":
            reason = f": {p['reason']}" if p.get("reason") else ""
            return f"{p['kind']} by {p['author']} {p['state']}{reason}" if p["state"] != "seen" else ""
        case "waiting":
            return f"waiting for {p['for']}"
        case "trainer_died":
            how = p.get("signal") or f"exit code {p.get('exit_code')}"
            return f"the trainer died ({how}); " + ("it is started again" if p.get("restart") else "given up")
        case "host_death":
            return f"the action host died ({p.get('signal')}) in {p.get('sub_action')}"
        case "nondeterministic":
            return f"no longer exactly repeatable: {p['cause']}"
        case "skill_kept":
            return f"skill kept: {p['name']}"
        case _:
            return ""


def _plan(row: Row) -> str:
    return f"plan revision {row['revision']} by {row['author']}, {row['executor']}: {row['rationale']}"


def _sub_action(row: Row) -> str:
    return f"  {row['mode']:<4} {row['name']}: {row['reason'] or row['goal']}"


def _code_version(row: Row) -> str:
    what = "admitted" if row["admitted"] else f"refused: {row['admission'].get('message', '')}"
    return f"code {row['sub_action']} version {row['version']} by {row['author']}, {what}"


def _trial(row: Row) -> str:
    told = f"trial {row['sub_action']} version {row['version']}: {row['outcome']}"
    if row["episodes"]:
        told += f", {row['successes']}/{row['episodes']}"
    return told + (f", {row['error']}" if row["error"] else "")


def _evaluation(row: Row) -> str:
    shown = rate(row["successes"], row["episodes"])
    reached = sum(row["milestones"].values()) / row["episodes"] if row["episodes"] else 0.0
    each = f", {reached:.1f} milestones an episode" if reached and not row["successes"] else ""
    return f"{row['split']} {row['variant']}: success {shown}{each}, {row['dead_loops']} dead loops"


def _verdict(row: Row) -> str:
    about = row["sub_action"] or f"iteration {row['iteration']}"
    better = f"; better: {row['better']}" if row["better"] else ""
    found = "good" if row["success"] else "not good"
    return f"verdict on {about} by {row['author']}: {found}, {row['cause']}{better}"


def _iteration(row: Row) -> str:
    return f"iteration {row['number']}"


def _training_run(row: Row) -> str:
    options = ", ".join(str(slot.get("name")) for slot in row["slots"]) or "none"
    planned = count(row["env_steps_planned"])
    return f"PPO run {row['run']}: {planned} env steps on {row['device']}, options {options}"


_TABLES = {
    "plan": _plan, "sub_action": _sub_action, "code_version": _code_version, "trial": _trial,
    "evaluation": _evaluation, "verdict": _verdict, "iteration": _iteration, "training_run": _training_run,
}  # fmt: skip
