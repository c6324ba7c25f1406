"""The rules by which sessions of schema 0001 showed what acts, as they were when that schema was given up.

Frozen, and used by the migration to 0002 alone: it writes down once what these rules said of an old session. Nothing
here follows a later change of `agents/choice.py` or of the fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from math import exp, log, sqrt
from operator import add
from typing import Any, NamedTuple

Row = Mapping[str, Any]
Z95 = 1.959963984540054
PARTIAL, CLEARLY = 0.2, 0.15
BOUNDARIES = ("phase", "waiting", "ended", "forked")
"""Kinds of event that begin a step: what the one before led to was decided by then."""


class Insert(NamedTuple):
    """An event to write before the row with this number."""

    before: int
    kind: str
    payload: dict[str, Any]
    when: tuple[Any, ...]
    """incarnation, at, active: of the row that led to it."""


@dataclass
class Attempt:
    row: Row
    trials: list[Row] = field(default_factory=list)

    def last(self, item: Row, until: int, outcome: str = "") -> Row | None:
        mine = (
            t for t in reversed(self.trials)
            if t["done_when"] == item["done_when"] and t["seq"] <= until and outcome in ("", t["outcome"])
        )  # fmt: skip
        return next(mine, None)


@dataclass
class Iteration:
    row: Row
    plans: list[int] = field(default_factory=list)
    evaluations: list[Row] = field(default_factory=list)
    closed: int = 0
    reopened: bool = False
    result: dict[str, Any] | None = None

    @property
    def tested(self) -> list[Row]:
        return [e for e in self.evaluations if e["split"] == "test" and e["variant"] == "full"]


class Session:
    """The fold of the few tables that the rules look at."""

    def __init__(self, session: Row) -> None:
        info = session["task_info"]
        self.scored: tuple[str, ...] = tuple(info["milestones"]) if info.get("kind") == "score" else ()
        self.iterations: list[Iteration] = []
        self.plans: dict[int, Row] = {}
        self.items: dict[int, list[Row]] = {}
        self.attempts: list[Attempt] = []
        self.waiting: int = 0
        self.revision = 0

    @property
    def sub_task(self) -> int:
        return int(self.iterations[-1].row["sub_task"]) if self.iterations else 0

    def fold(self, table: str, row: Row) -> None:
        last = self.iterations[-1] if self.iterations else None
        if table == "iteration":
            self.iterations.append(Iteration(row))
        elif table == "plan":
            self.plans[row["revision"]] = row
            self.items[row["revision"]] = []
            self.waiting = row["revision"]
            if last:
                last.plans.append(row["revision"])
        elif table == "sub_action":
            self.items[row["revision"]].append(row)
        elif table == "code_version":
            self.attempts.append(Attempt(row))
        elif table == "trial":
            for attempt in reversed(self.attempts):
                if (attempt.row["sub_action"], attempt.row["version"]) == (row["sub_action"], row["version"]):
                    attempt.trials.append(row)
                    break
        elif table == "evaluation" and last:
            place = (row["sub_task"], row["iteration"])
            same = (i for i in self.iterations if (i.row["sub_task"], i.row["number"]) == place)
            next(same, last).evaluations.append(row)
        elif table == "verdict" and last and row["sub_action"] is None:
            last.closed, last.reopened = row["seq"], False
        elif table == "event" and row["kind"] == "plan_in_force":
            self.revision = row["payload"]["revision"]
            self.waiting = 0 if self.waiting == self.revision else self.waiting
            if last and last.closed:
                last.reopened = True
        elif table == "event" and row["kind"] == "plan_rejected":
            self.waiting = 0

    # ---- which version acts -----------------------------------------------------------------------
    def accepted(self, item: Row, until: int, used: Mapping[int, tuple[float, int]]) -> Attempt | None:
        best: Attempt | None = None
        bar = 0.0
        for attempt in self.attempts:
            if attempt.row["sub_action"] != item["name"]:
                continue
            trial = attempt.last(item, until, "accepted")
            operator = attempt.row["author"] == "operator"
            if trial and (operator or (not (best and best.row["author"] == "operator") and _share(trial) >= bar)):
                mine = used.get(attempt.row["version"])
                if best is None or operator or not _worse(mine, used.get(best.row["version"])):
                    best = attempt
                bar = max(bar, _share(trial) - CLEARLY)
        return best

    def usable(self, item: Row, until: int, used: Mapping[int, tuple[float, int]]) -> Attempt | None:
        accepted = self.accepted(item, until, used)
        if item["mode"] == "rl" and (accepted or item["author"] == "operator" or item["pinned"]):
            return None
        best, bar = accepted, PARTIAL
        if best is None:
            for attempt in self.attempts:
                trial = attempt.last(item, until) if attempt.row["sub_action"] == item["name"] else None
                if trial and trial["outcome"] == "failed" and _share(trial) >= bar:
                    best, bar = attempt, _share(trial)
        return best

    def in_use(self, item: Row) -> dict[int, tuple[float, int]]:
        """Version -> (done, came) of the last closed iteration that used it."""
        found: dict[int, tuple[float, int]] = {}
        if sum(attempt.row["sub_action"] == item["name"] for attempt in self.attempts) < 2:
            return found
        for iteration in self.iterations:
            if iteration.row["sub_task"] != self.sub_task or not iteration.closed or not iteration.plans:
                continue
            dev = [e for e in iteration.evaluations if e["split"] == "dev" and item["name"] in e["funnel"]]
            alone = [e for e in dev if e["variant"] == "plan" or (e["variant"], e["policy"]) == ("full", "plan")]
            used = self.usable(item, iteration.closed, found) if alone else None
            if used is None:
                continue
            items = self.items[alone[-1]["revision"]]
            alone = [e for e in alone if e["revision"] == alone[-1]["revision"]]
            names = [each["name"] for each in items]
            if item["name"] not in names:
                continue
            came = sum(e["episodes"] for e in alone)
            for before in reversed(items[: names.index(item["name"])]):
                if before["name"] in alone[-1]["funnel"] and self.usable(before, iteration.closed, {}):
                    came = sum(e["funnel"][before["name"]] for e in alone)
                    break
            found[used.row["version"]] = (min(sum(e["funnel"][item["name"]] for e in alone), came), came)
        return found

    def chosen(self, revision: int) -> Iterator[dict[str, Any]]:
        for item in self.items.get(revision, ()):
            until = 2**62
            if not any(a.row["sub_action"] == item["name"] and a.last(item, until) for a in self.attempts):
                continue
            used = self.in_use(item)
            accepted, acting = self.accepted(item, until, used), self.usable(item, until, used)
            yield {
                "revision": revision,
                "item": item["name"],
                "version": acting.row["version"] if acting else None,
                "accepted": acting is not None and acting is accepted,
                "why": _why(item, accepted, acting),
            }

    # ---- which iteration is the result --------------------------------------------------------------
    def pooled(self, iteration: Iteration, variant: str) -> tuple[float, int]:
        """(episodes won, episodes) in development; of a score, `episodes` times that score in [0, 1]."""
        parts = [e for e in iteration.evaluations if e["split"] == "dev" and e["variant"] == variant]
        same = [e for e in parts if (e["revision"], e["run"]) == (parts[-1]["revision"], parts[-1]["run"])]
        return round(sum(map(self._won, same)), 2), sum(e["episodes"] for e in same)

    def _won(self, row: Row) -> float:
        if not self.scored:
            return float(row["successes"])
        return score(row["milestones"], row["episodes"], self.scored) * float(row["episodes"])

    def rate(self, iteration: Iteration, variant: str) -> float:
        won, episodes = self.pooled(iteration, variant)
        return won / episodes if episodes else -1.0

    def result(self, iteration: Iteration, tested: list[Row]) -> dict[str, Any] | None:
        """`tested`: the iteration's test evaluations, which showed what acts from then on."""
        policy = "greedy" if self.rate(iteration, "greedy") > self.rate(iteration, "full") else "full"
        dev = [e for e in iteration.evaluations if e["split"] == "dev" and e["variant"] == "full"]
        learnt, code = any(e["policy"] == "ppo" for e in dev), self.pooled(iteration, "plan")
        variant, why = policy, "the only one there is"
        if tested:
            variant = "plan" if learnt and tested[-1]["policy"] != "ppo" else policy
            why = "what the test episodes were played with"
        elif learnt and code[1]:
            if self.scored:
                ahead = self.rate(iteration, policy) > self.rate(iteration, "plan")
            else:
                ahead = _worse(code, self.pooled(iteration, policy))
            variant = policy if ahead else "plan"
            why = f"policy {self.rate(iteration, policy):.2f}, code alone {self.rate(iteration, 'plan'):.2f}"
        won, episodes = self.pooled(iteration, variant)
        if not episodes:
            return None
        low, high = wilson(won, episodes)
        return {
            "sub_task": iteration.row["sub_task"], "iteration": iteration.row["number"], "variant": variant,
            "score": won / episodes, "low": low, "high": high, "why": why,
        }  # fmt: skip

    def incumbent(self) -> dict[str, Any] | None:
        best: Iteration | None = None
        for iteration in self.iterations:
            if iteration.row["sub_task"] != self.sub_task or not iteration.closed or not iteration.result:
                continue
            if best is None or best.result is None or iteration.result["score"] > best.result["score"]:
                best = iteration
        if best is None or best.result is None:
            return None
        why = f"highest development result, {best.result['score']:.2f}"
        return {"sub_task": self.sub_task, "iteration": best.row["number"], "why": why}


def decisions(session: Row, rows: Iterable[tuple[str, Row]], last_seq: int) -> list[Insert]:
    """What the old rules said, at the places where a worker of schema 0002 would have written it; `rows` in order."""
    rows = list(rows)
    whole, now = Session(session), Session(session)
    for table, row in rows:
        whole.fold(table, row)
    tests = {(i.row["sub_task"], i.row["number"]): i.tested for i in whole.iterations}
    found: list[Insert] = []
    written: dict[tuple[Any, ...], dict[str, Any]] = {}
    tested = False

    def write(before: int, kind: str, payload: dict[str, Any], *place: Any) -> None:
        if written.get((kind, *place)) != payload:
            written[(kind, *place)] = payload
            found.append(Insert(before, kind, payload, when))

    def decide(before: int) -> None:
        last = now.iterations[-1] if now.iterations else None
        if last is None or tested:
            return
        if not last.closed or last.reopened:
            for revision in dict.fromkeys((now.revision, now.waiting)):
                plan = now.plans.get(revision)
                if plan and (plan["sub_task"], plan["iteration"]) == (last.row["sub_task"], last.row["number"]):
                    for payload in now.chosen(revision):
                        write(before, "version_chosen", payload, revision, payload["item"])
            return
        place = (last.row["sub_task"], last.row["number"])
        last.result = now.result(last, tests[place])
        if last.result:
            write(before, "iteration_result", last.result, *place)
        if best := now.incumbent():
            write(before, "incumbent", best, now.sub_task)

    when: tuple[Any, ...] = (0, 0.0, 0.0)
    for table, row in rows:
        if table == "evaluation" and row["split"] == "test" and not tested:
            tested = True
            place = {"sub_task": row["sub_task"], "iteration": row["iteration"]}
            known = written.get(("incumbent", row["sub_task"]), {})
            if known.get("iteration") != row["iteration"]:
                write(row["seq"], "incumbent", place | {"why": "its test episodes were played"}, row["sub_task"])
        if table == "event" and row["kind"] in BOUNDARIES:
            decide(row["seq"])
        now.fold(table, row)
        when = (row["incarnation"], row["at"], row["active"])
    decide(last_seq + 1)
    return found


def score(reached: Mapping[str, int], episodes: int, milestones: Iterable[str]) -> float:
    """Crafter's, in [0, 1]; the only world that had one."""
    rates = [100 * reached.get(name, 0) / episodes for name in milestones]
    return (exp(reduce(add, [log(1 + rate) for rate in rates]) / len(rates)) - 1) / 100


def wilson(won: float, episodes: int) -> tuple[float, float]:
    share, spread = won / episodes, Z95 * Z95 / episodes
    centre = (share + spread / 2) / (1 + spread)
    half = Z95 * sqrt(share * (1 - share) / episodes + spread / (4 * episodes)) / (1 + spread)
    return (0.0 if won == 0 else centre - half, 1.0 if won == episodes else centre + half)


def _share(trial: Row) -> float:
    return trial["successes"] / trial["episodes"] if trial["episodes"] else 0.0


def _worse(use: tuple[float, int] | None, other: tuple[float, int] | None) -> bool:
    if not use or not other or not use[1] or not other[1]:
        return False
    shares = [done / came for done, came in (use, other)]
    variance = sum(share * (1 - share) / came for share, (_, came) in zip(shares, (use, other), strict=True))
    return shares[1] - shares[0] > sqrt(variance)


def _why(item: Row, accepted: Attempt | None, acting: Attempt | None) -> str:
    shown = accepted or acting
    if acting is None:
        return "left to RL" if item["mode"] == "rl" else "no version works, not even sometimes"
    assert shown is not None
    trial = shown.last(item, 2**62, "accepted" if accepted else "")
    told = f"{trial['successes']} of {trial['episodes']} trials" if trial else "its trials"
    return f"accepted in {told}" if accepted else f"none is accepted; this one did its work in {told}"
