"""What happens in a session, a line each: for the log, and for terminals without a console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlgpt.console.view.numbers import count, many, measured
from rlgpt.console.view.words import ACTS, PHASES, ROLES
from rlgpt.store.history import Measured

Row = Mapping[str, Any]


def sentence(table: str, row: Row) -> str:
    """The line for a row; empty for rows nobody waits for. Metrics are curves, not lines."""
    if table == "event":
        return _event(row["kind"], row["payload"])
    tell = _TABLES.get(table)
    return tell(row) if tell else ""


def logged(table: str, row: Row) -> dict[str, Any] | None:
    """The row as one of the log, None if it says nothing; phases are for debugging."""
    if table == "log":
        return {key: row[key] for key in LOGGED}
    text, level = sentence(table, row).strip(), "info"
    if table == "event" and row["kind"] == "phase":
        text, level = _phase(row["payload"]), "debug"
    elif _warns(table, row):
        level = "warning"
    elif table == "event" and row["kind"] == "ended":
        text = f"{row['payload']['status']}: {row['payload']['reason']}"
    elif table == "sub_action":
        return None  # the plan pane shows them
    if not text:
        return None
    said = {"level": level, "event": " ".join(text.split()), "fields": {}}
    return {key: row[key] for key in ("seq", "at", "active")} | said


LOGGED = ("seq", "at", "active", "level", "event", "fields")
"""Keys of a row of the log, as `rlgpt logs --json` prints them."""
WARNINGS = ("trainer_died", "host_death", "nondeterministic")


def _warns(table: str, row: Row) -> bool:
    if table == "event":
        return row["kind"] in WARNINGS or row["payload"].get("state") in ("refused", "expired")
    return table == "llm_call"


def _phase(p: Row) -> str:
    about = [str(p[key]) for key in ("item", "split", "variant") if p.get(key)]
    number = f" {p['number']}" if "number" in p else ""
    return " ".join([PHASES.get(str(p.get("name", "")), str(p.get("name", ""))) + number, *about])


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
            words = [str(line) for line in p.get("last_lines", ()) if str(line).strip()]
            told = f": {words[-1]}" if words else ""
            return f"the trainer died ({how}{told}); " + ("it is started again" if p.get("restart") else "given up")
        case "host_death":
            return f"the action host died ({p.get('signal')}) in {p.get('sub_action')}"
        case "nondeterministic":
            return f"no longer exactly repeatable: {p['cause']}"
        case "version_chosen":
            acts = f"v{p['version']} acts" if p["version"] else "no code acts"
            return f"{p['item']}: {acts}: {p['why']}"
        case "iteration_result":
            return f"iteration {p['iteration']} closed with {p['score']:.2f}{ACTS[p['variant']]}: {p['why']}"
        case "incumbent":
            return f"iteration {p['iteration']} is the incumbent: {p['why']}"
        case "skill_kept":
            return f"skill kept: {p['name']}"
        case _:
            return ""


def _call(row: Row) -> str:
    """A call that failed: until it is answered nothing else happens."""
    if row["state"] != "failed":
        return ""
    role = ROLES.get(str(row["role"]), str(row["role"]))
    return f"no answer for the {role} from {row['model']} (try {row['try_number']}): {row['error']}"


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
    result = Measured(row["successes"], row["episodes"], row["score"])
    told = measured(result) if result.score is not None else f"success {measured(result)}"
    reached = sum(row["milestones"].values()) / row["episodes"] if row["episodes"] else 0.0
    if reached and not row["successes"]:
        told = f"{reached:.1f} milestones an episode, {told}"
    return f"{row['split']} {row['variant']}: {told}, {many(row['dead_loops'], 'dead loop')}"


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
    "llm_call": _call, "evaluation": _evaluation, "verdict": _verdict, "iteration": _iteration,
    "training_run": _training_run,
}  # fmt: skip
