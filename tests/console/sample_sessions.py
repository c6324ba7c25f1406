"""The sessions that the console is tested and measured on, told with `Story`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from story import Story

from rlgpt.store import events
from rlgpt.store.commands import parse_command

CHOP_1 = '''def collect_wood(view):
    """Walk to the nearest tree in sight and strike it."""
    for _ in range(40):
        tree = nearest(view, "tree")
        if tree is None:
            view = yield "move_right"
            continue
        view = yield step_towards(view, tree)
'''
CHOP_2 = '''def collect_wood(view):
    """Walk to the nearest remembered tree and strike it until the inventory grows."""
    wood = view.inventory["wood"]
    for _ in range(60):
        tree = nearest(view, "tree", remembered=True)
        if tree is None:
            view = yield explore(view)
            continue
        if facing(view) == "tree":
            view = yield "do"
        else:
            view = yield step_towards(view, tree)
        if view.inventory["wood"] > wood:
            return
'''
TABLE_1 = """def place_table(view):
    while view.inventory["wood"] < 1:
        view = yield "noop"
    view = yield "place_table"
"""
PICKAXE = """def make_wood_pickaxe(view):
    view = yield "make_wood_pickaxe"
"""


def whole(session_id: str = "s-demo", llm: str = "rules", ended: bool = True, **more: Any) -> Story:
    """Two iterations with repair, refusal, PPO, a resume, an override during PPO, evaluations and a test."""
    s = Story(session_id, llm=llm, **more)
    s.open()
    s.add("iteration", 0.0, sub_task=0, number=0)
    s.plan(0, 1)
    s.attempt(0, 1, "collect_wood", CHOP_1, 1)
    s.attempt(0, 1, "collect_wood", CHOP_2, 5, attempt=2)
    s.attempt(0, 1, "place_table", TABLE_1, 4)
    s.attempt(
        0,
        1,
        "make_wood_pickaxe",
        "import os\n" + PICKAXE,
        0,
        admitted=False,
        rule="import",
        line=1,
        message="`import os`: generated code may import nothing; the library names are already there",
    )
    s.attempt(0, 1, "make_wood_pickaxe", PICKAXE, 4, attempt=2)
    s.attempt(
        0,
        1,
        "collect_stone",
        "def collect_stone(view):\n    view = yield 'dig'\n",
        0,
        episodes=5,
        error="ValueError: line 2: 'dig' is no primitive of crafter; did you mean 'do'?",
    )
    s.plan(0, 2, author="refine", modes={"collect_stone": "rl"}, depth=1)
    s.configure(0, 2)
    s.train(0, 2, 1, updates=14, end="")
    s.incarnation = 2
    s.event(events.Resumed(from_seq=s.rows[-3][1]["seq"], run=1, update=12, env_steps=12 * 2048, cause="SIGKILL"))
    s.log("warning", "resumed", cause="SIGKILL", lost_env_steps=4096)
    s.train(0, 2, 1, updates=18, start=12, opened=False)
    s.evaluate(0, 2, 1, 21, run=1)
    s.evaluate(0, 2, 2, 17, variant="plan", run=1)
    s.judge(
        0, 2, False, "undecided", "Half of the episodes die at dusk on the way to stone; code and policy are level."
    )
    s.add("iteration", 0.0, sub_task=0, number=1)
    s.plan(1, 3, pinned=("survive_zombies",))
    s.attempt(
        1, 3, "collect_stone", "def collect_stone(view):\n    for _ in range(80):\n        view = yield dig(view)\n", 3
    )
    s.configure(1, 3)
    s.train(1, 3, 2, updates=10, level=0.4, end="superseded")
    edit = {"op": "set", "name": "collect_stone", "mode": "rl"}
    s.command("k1", parse_command("override", {"edits": [edit], "apply": "now"}), 3)
    s.event(events.Advice(agent="fast", text="Use the tunnel: zombies stay on grass.", author="ada@lab"))
    s.plan(1, 4, author="operator", modes={"collect_stone": "rl"}, pinned=("survive_zombies", "collect_stone"))
    late = parse_command("override", {"edits": [{"op": "pin", "name": "place_table"}], "apply": "now"})
    s.command("k2", late, 3, "refused", "the plan is at revision 4 now, the edit saw revision 3")
    s.configure(1, 4)
    s.train(1, 4, 3, updates=25 if ended else 12, level=0.45, gain=0.4, end="finished" if ended else "")
    if ended:
        s.evaluate(1, 4, 3, 38, run=3)
        s.evaluate(1, 4, 4, 22, variant="plan", run=3)
        s.judge(1, 4, True, "policy", "The policy takes over at dusk; 38 of 50 against 22 of 50 for the code alone.")
        s.evaluate(1, 4, 5, 74, episodes=100, split="test", run=3)
        s.event(events.SkillKept(name="collect_wood", hash=s.text(CHOP_2)))
        s.event(events.Ended(status="finished", reason="all 4 iterations are done"))
        s.log("info", "session_ended", status="finished")
    return s


def long(updates: int = 25_000, fates: int = 10_000) -> Iterator[tuple[str, dict[str, Any]]]:
    """A session of `updates` metric rows and about `fates` commands, for measurements."""
    s = Story("s-long")
    s.open()
    s.add("iteration", 0.0, sub_task=0, number=0)
    s.plan(0, 1)
    s.attempt(0, 1, "collect_wood", CHOP_2, 5)
    s.configure(0, 1)
    s.train(0, 1, 1, updates=0, end="")
    every = max(updates // max(fates, 1), 1)
    for update in range(1, updates + 1):
        s.metric(1, update, 2048, 0.8 * (1 - math.exp(-update / 8000)))
        if update % every == 0:
            s.event(events.Command(f"k{update}", "pause", "ada@lab", 1, {}, "applied"))
        yield from s.rows
        s.rows.clear()
