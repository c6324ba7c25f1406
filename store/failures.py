"""How lost episodes are told: one text for the agents' requests and for the operator.

A failure is plain data of a row (`evaluation.failures["lost"]`, `trial.evidence["lost"]`):

    seed, end (death | time | idle | error ...), cause ("" where nobody knows), steps, vitals, doing, undone, message,
    timeline  [{step, doing, and what the world tells of a moment}], a line every 25 env steps and at the end
    last      [{step, doing, did, line, code, changed}], the last env steps one by one
    before, after  {step, picture}
    survey    what of the episode's world was seen and what there was; only where the world tells

Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlgpt.store.row_types import JsonObject

Failure = JsonObject


def ended(end: str, cause: str | None = "") -> str:
    """How an episode ended, as it is counted: each cause of death by itself."""
    if end == "death":
        return f"death: {cause}" if cause else "death"
    return end


def told(failure: Failure, timeline: bool = True) -> str:
    """The failure as text. `timeline` False: the last steps and pictures only."""
    parts = [_heading(failure)]
    if failure.get("survey"):
        parts.append(f"the world: {failure['survey']}")
    if timeline and failure.get("timeline"):
        parts += ["timeline:", *(_moment(moment) for moment in failure["timeline"])]
    if failure.get("last"):
        parts += ["last steps:", *_steps(failure["last"])]
    for name in ("before", "after"):
        shot = failure.get(name)
        if isinstance(shot, Mapping) and shot.get("picture"):
            parts += [f"{'' if name == 'before' else 'the end, '}step {shot.get('step')}:", str(shot["picture"])]
    return "\n".join(parts)


def _heading(failure: Failure) -> str:
    end = {"death": "the agent died", "time": "out of steps", "idle": "returned 5 times in a row without acting"}
    how = end.get(str(failure["end"]), str(failure["end"]))
    if failure.get("cause"):
        how += f", killed by: {failure['cause']}"
    doing = f" in {failure['doing']}" if failure.get("doing") else ""
    undone = f"; first sub-action not done: {failure['undone']}" if failure.get("undone") else ""
    vitals = f"; then {_values(failure['vitals'])}" if failure.get("vitals") else ""
    message = f"; {failure['message']}" if failure.get("message") else ""
    return f"seed {failure['seed']}: {how} after {failure['steps']} env steps{doing}{undone}{vitals}{message}"


def _moment(moment: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in moment.items() if key not in ("step", "doing")}
    return f"  {moment['step']:>4} {moment.get('doing') or 'start'}: {_values(rest)}"


def _steps(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line of code is written out where it begins to yield."""
    lines, before = [], ""
    for step in steps:
        where = step["doing"] + (f", line {step['line']} `{step['code']}`" if step.get("line") else "")
        news = "; ".join(_change(key, then, now) for key, (then, now) in (step.get("changed") or {}).items())
        shown = "same line" if where == before and step.get("line") else where
        lines.append(f"  {step['step']:>4} {shown}: {step['did']}; {news or 'nothing changed'}")
        before = where
    return lines


def _change(key: str, then: Any, now: Any) -> str:
    """Of a number both, of a list what it is now."""
    if isinstance(now, int | float):
        return f"{key} {_value(then)} -> {_value(now)}"
    return f"{key} {_value(now)}"


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_value(value)}" for key, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return "(" + (_values(value) or "nothing") + ")"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "(" + ", ".join(_value(part) for part in value) + ")"
    return "none" if value is None else str(value)


def choose(failures: Sequence[Failure], most: int) -> list[Failure]:
    """The most telling of them: first one of each way to be lost, the commonest way first, then more of each. What is
    no failure, in a bundle from somebody else, is left out."""
    failures = [failure for failure in failures if _sound(failure)]
    return _in_turns(failures, lambda failure: (failure["end"], failure.get("cause"), failure.get("undone")))[:most]


def cover(failures: Sequence[Failure], most: int) -> list[Failure]:
    """`choose`, but one of each sub-action that lost any, however many: each is repaired by what it lost."""
    chosen = choose(failures, most)
    lacking = [f for f in choose(failures, len(failures)) if f.get("undone") not in {c.get("undone") for c in chosen}]
    return [*chosen, *_in_turns(lacking, lambda failure: failure.get("undone"))[: len({f["undone"] for f in lacking})]]


def _in_turns(failures: Sequence[Failure], way: Callable[[Failure], Any]) -> list[Failure]:
    """One of each way, the commonest first, then another of each."""
    ways: dict[Any, list[Failure]] = {}
    for failure in failures:
        ways.setdefault(way(failure), []).append(failure)
    queues = sorted(ways.values(), key=len, reverse=True)
    turns = range(max(map(len, queues), default=0))
    return [queue[turn] for turn in turns for queue in queues if turn < len(queue)]


def _sound(failure: object) -> bool:
    """Whether `told` can tell it."""
    if not isinstance(failure, Mapping):
        return False
    timeline, last = failure.get("timeline", []), failure.get("last", [])
    vitals = failure.get("vitals") or {}
    words = [failure.get(name) for name in ("cause", "undone")]
    return (
        isinstance(failure.get("end"), str) and all(isinstance(word, str | None) for word in words)
        and {"seed", "steps"} <= failure.keys()
        and isinstance(vitals, Mapping)
        and isinstance(timeline, list) and all(_at_step(moment) for moment in timeline)
        and isinstance(last, list) and all(_at_step(step) and _yielded(step) for step in last)
    )  # fmt: skip


def _at_step(moment: object) -> bool:
    return isinstance(moment, Mapping) and isinstance(moment.get("step"), int)


def _yielded(step: Mapping[str, Any]) -> bool:
    changed = step.get("changed") or {}
    pairs = changed.values() if isinstance(changed, Mapping) else [None]
    code = isinstance(step.get("code", ""), str) and (not step.get("line") or "code" in step)
    named = isinstance(step.get("doing"), str) and "did" in step
    return code and named and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
