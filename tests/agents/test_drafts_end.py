"""Whatever becomes of drafts, an iteration ends, every draft is asked for once, and what is judged was tried."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from rlgpt.agents.loop import Code, Evaluate, JudgeItem, JudgeIteration, Limits, Plan, Trial, next_step
from tests.agents.histories import Told

OUTCOMES = ("accepted", "accepted", "failed", "failed", "refused", "empty", "stopped", "vacuous", "unreached")


@pytest.mark.parametrize("seed", range(200))
def test_an_iteration_of_drafts_with_any_outcomes_ends(seed: int) -> None:
    chance = random.Random(seed)
    limits = Limits(inner=chance.randint(1, 3), depth=2, critic="model", candidates=chance.choice((1, 2, 3, 8)))
    told, asked = Told().iteration(), Counter[Code]()
    operator = chance.random() < 0.3
    for _ in range(3_000):
        step = next_step(told.history, limits)
        match step:
            case Plan():
                depth = told.history.plan.depth + 1 if told.history.plan else 0
                done = chance.choice(("view.{}", "view.{} > 1"))
                goals = {name: chance.choice(("Do it.", "Do it well.")) for name in ("dig", "cut")}
                cut = "code" if depth < 2 else "rl"
                told.plan("sequence", depth, done=done, goals=goals, dig="code", cut=cut)
                asked.clear()
            case Code(item=name, draft=draft):
                assert (draft is None) == (limits.candidates == 1) and (draft or 1) <= limits.candidates
                asked[step] += not operator  # whose version may come before a draft's trial, which is not made then
                assert asked[step] <= 1, "the same draft is asked for twice"
                outcome = chance.choice(OUTCOMES)
                bad = outcome in ("refused", "empty")
                told.code(name, admitted=not bad, rule="empty" if outcome == "empty" else "call", draft=draft)
                if operator and chance.random() < 0.1:
                    told.code(name, author="operator")
            case Trial(item=name):
                last = told.history.attempts_of(name)[-1]
                outcome = "refused" if not last.admitted else chance.choice(OUTCOMES[:4] + OUTCOMES[6:])
                wins = chance.randint(3, 5) if outcome == "accepted" else chance.randint(0, 2)
                told.trial(name, wins if outcome in ("accepted", "failed") else 0, outcome)
            case JudgeItem(item=name, version=version):
                judged = told.history.attempt(name, version)
                assert judged is not None and judged.trial is not None and judged.verdict is None
                told.verdict(name, version=version)
            case Evaluate() | JudgeIteration():
                return
            case _:
                told.config().train()
    raise AssertionError("the iteration never ends")
