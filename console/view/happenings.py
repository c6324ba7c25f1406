"""Rows of a session as single lines, for the log and for terminals without a console."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from rlgpt.console.view.numbers import count, many, measured
from rlgpt.console.view.words import ACTS, NO_CODE, PHASES, ROLES, asked_for
from rlgpt.store import event_payloads, events
from rlgpt.store.history import Measured
from rlgpt.store.row_types import (
    Change,
    CodeVersionRow,
    EvaluationRow,
    IterationRow,
    JsonObject,
    LlmCallRow,
    PlanRow,
    SubActionRow,
    TrainingRunRow,
    TrialRow,
    VerdictRow,
)


class LogLine(TypedDict):
    """A line of the log, as `rlgpt logs --json` prints it."""

    seq: int
    at: float
    active: float
    level: str
    event: str
    fields: JsonObject


def sentence(change: Change) -> str:
    """The line for a row; empty for rows that are not reported, such as metrics, which are drawn as curves."""
    if change[0] == "event":
        return _event(event_payloads.read_event(change[1]["kind"], change[1]["payload"]))
    tell = _TABLES.get(change[0])
    return tell(change[1]) if tell else ""


def logged(change: Change) -> LogLine | None:
    """The row as one of the log, None if it says nothing; phases are for debugging."""
    level = "info"
    fields: JsonObject = {}
    match change:
        case ("log", row):
            text, level, fields = row["event"], row["level"], row["fields"]
        case ("sub_action", _):
            return None  # the plan pane shows them
        case ("event", row):
            text, level = _logged_event(event_payloads.read_event(row["kind"], row["payload"]))
        case ("llm_call", _):
            text, level = sentence(change), "warning"
        case _:
            text = sentence(change)
    if change[0] != "log":
        text = " ".join(text.split())
        if not text:
            return None
    when = change[1]
    return LogLine(seq=when["seq"], at=when["at"], active=when["active"], level=level, event=text, fields=fields)


def _logged_event(event: events.Event | None) -> tuple[str, str]:
    match event:
        case events.Phase():
            return _phase(event), "debug"
        case events.Ended():
            return f"{event.status}: {event.reason}", "info"
        case events.TrainerDied() | events.HostDeath() | events.Nondeterministic():
            return _event(event), "warning"
        case events.Command(state="refused" | "expired"):
            return _event(event), "warning"
        case _:
            return _event(event), "info"


def _phase(phase: events.Phase) -> str:
    about = [text for text in (phase.item, phase.split, phase.variant) if text]
    number = f" {phase.number}" if phase.number is not None else ""
    return " ".join([PHASES.get(phase.name, phase.name) + number, *about])


def _event(event: events.Event | None) -> str:
    match event:
        case events.Started():
            return "started"
        case events.Resumed():
            return f"resumed after row {event.from_seq}: {event.cause or 'the worker had ended'}"
        case events.PlanInForce(revision=revision):
            return f"plan {revision} is active"
        case events.PlanWaiting(revision=revision):
            return f"plan {revision} waits for approval"
        case events.PlanRejected():
            return f"plan {event.revision} was rejected by {event.author}"
        case events.TrainingEnded():
            why = f": {event.reason}" if event.reason else ""
            return f"PPO run {event.run} {event.state} after {count(event.env_steps)} env steps{why}"
        case events.Command():
            reason = f": {event.reason}" if event.reason else ""
            return f"{event.kind} by {event.author} {event.state}{reason}" if event.state != "seen" else ""
        case events.Waiting(for_=what):
            return f"waiting for {what}"
        case events.TrainerDied():
            words = f": {event.last_words}" if event.last_words else ""
            return f"the worker died ({event.how}{words}); {'it is started again' if event.restart else 'given up'}"
        case events.HostDeath():
            fate = "; that source is not run again" if event.quarantined else ""
            return f"the action host died: {event.cause}{fate}"
        case events.Nondeterministic(cause=cause):
            return f"no longer exactly repeatable: {cause}"
        case events.VersionChosen():
            acts = f"v{event.version} acts" if event.version else "no code acts"
            return f"{event.item}: {acts}: {event.why}"
        case events.IterationResult():
            acts = ACTS.get(event.variant, "")
            return f"iteration {event.iteration} closed with {event.score:.2f}{acts}: {event.why}"
        case events.Incumbent():
            return f"iteration {event.iteration} is the best so far: {event.why}"
        case events.SkillKept(name=name):
            return f"skill kept: {name}"
        case events.Probed():
            what, item = asked_for(event.step)
            return f"a model that {what}{item} tries {event.headline}"
        case _:
            return ""


def _call(row: LlmCallRow) -> str:
    """A call that failed: until it is answered nothing else happens."""
    if row["state"] != "failed":
        return ""
    role = ROLES.get(str(row["role"]), str(row["role"]))
    return f"no answer for the {role} from {row['model']} (try {row['try_number']}): {row['error']}"


def _plan(row: PlanRow) -> str:
    return f"plan {row['revision']} by {row['author']}, run by {row['executor']}: {row['rationale']}"


def _sub_action(row: SubActionRow) -> str:
    return f"  {row['mode']:<4} {row['name']}: {row['reason'] or row['goal']}"


def _code_version(row: CodeVersionRow) -> str:
    if row["admission"].get("rule") == NO_CODE:
        return f"code {row['sub_action']}: no further version"
    what = "admitted" if row["admitted"] else f"refused: {row['admission'].get('message', '')}"
    return f"code {row['sub_action']} version {row['version']} by {row['author']}, {what}"


def _trial(row: TrialRow) -> str:
    about, error = f"trial {row['sub_action']} version {row['version']}", row["error"] or ""
    if error.startswith(row["outcome"]):  # such as "refused by admission, rule ..."
        return f"{about}: {error}"
    share = f", {row['successes']}/{row['episodes']}" if row["episodes"] else ""
    return f"{about}: {row['outcome']}{share}" + (f", {error}" if error else "")


def _evaluation(row: EvaluationRow) -> str:
    result = Measured(row["successes"], row["episodes"], row["score"])
    result_words = measured(result) if result.score is not None else f"success {measured(result)}"
    reached = sum(row["milestones"].values()) / row["episodes"] if row["episodes"] else 0.0
    if reached and not row["successes"]:
        result_words = f"{reached:.1f} milestones an episode, {result_words}"
    return f"{row['split']} {row['variant']}: {result_words}, {many(row['dead_loops'], 'dead loop')}"


def _verdict(row: VerdictRow) -> str:
    about = row["sub_action"] or f"iteration {row['iteration']}"
    better = f"; better: {row['better']}" if row["better"] else ""
    judgement = "good" if row["success"] else "not good"
    return f"verdict on {about} by {row['author']}: {judgement}, {row['cause']}{better}"


def _iteration(row: IterationRow) -> str:
    return f"iteration {row['number']}"


def _training_run(row: TrainingRunRow) -> str:
    options = ", ".join(str(slot.get("name")) for slot in row["slots"]) or "none"
    planned = count(row["env_steps_planned"])
    return f"PPO run {row['run']}: {planned} env steps on {row['device']}, options {options}"


_TABLES: Mapping[str, Callable[[Any], str]] = {
    "plan": _plan, "sub_action": _sub_action, "code_version": _code_version, "trial": _trial,
    "llm_call": _call, "evaluation": _evaluation, "verdict": _verdict, "iteration": _iteration,
    "training_run": _training_run,
}  # fmt: skip
