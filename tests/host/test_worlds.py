"""The host serves a real world, and serves it alike in every mode and every process."""

from __future__ import annotations

import pytest

from rlgpt.training.host.api import FOLLOW_PLAN, Action, Answer, Ask, Host, PlanItem, Programs, source_hash
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.worlds import registry

SOURCE = """
def gather(view, what: Literal["tree", "stone"]):
    seen = set()
    while True:
        step = approach(view, what)
        seen.add((view.position, view.facing))
        if step is None or len(seen) % 5 == 0:
            step = rng.choice(sorted({"move_left", "move_right", "move_up", "move_down"}))
        view = yield step
"""
DONE = "view.inventory.get('wood', 0) > start.inventory.get('wood', 0)"
REWARD = "def reward(before, view):\n    return (view.energy - before.energy) / 9"


def played(host: Host, steps: int) -> list[list[Answer]]:
    """Two lanes of crafter: an action and a plan, with everything asked."""
    world = registry.get("crafter")
    envs = [world.make(next(iter(world.tasks))) for _ in range(2)]
    for seed, env in enumerate(envs):
        env.reset(seed)
    for kind, text in (("action", SOURCE), ("done_when", DONE), ("reward", REWARD)):
        assert host.admit(kind, text, [[env.view(True)] for env in envs]).admitted  # type: ignore[arg-type]
    name = source_hash(SOURCE)
    tree, stone = (Action(name, (("what", what),)) for what in ("tree", "stone"))
    host.load(Programs({name: SOURCE}, (tree, stone), (PlanItem(DONE, tree),), (DONE,), (source_hash(REWARD),)))
    asks = [Ask(lane, env.view(True), (1, FOLLOW_PLAN)[lane], episode_start=True) for lane, env in enumerate(envs)]
    answers = []
    for _ in range(steps):
        answers.append(host.tick(asks))
        asks = []
        for env, answer in zip(envs, answers[-1], strict=True):
            if answer.command is not None:
                env.step(answer.command)
                asks.append(Ask(answer.lane, env.view(False), None, True, False, True, True, True, env.steps))
            else:
                asks.append(Ask(answer.lane, env.view(True), 0, step=env.steps))
    return answers


def test_crafter_is_served_alike_in_two_processes_and_in_the_trainer() -> None:
    runs = []
    for mode in ("locked", "locked", "trusted"):
        host = open_host(registry.get("crafter"), lanes=2, mode=mode, seed=5)  # type: ignore[arg-type]
        runs.append(played(host, 40))
        assert host.deaths == 0
        host.close()
    assert runs[0] == runs[1] == runs[2]
    commands = {answer.command for answers in runs[0] for answer in answers}
    assert len(commands) > 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('approach(view, "iron", avoid=("lava",))', "`avoid` does not take 'lava'; it takes: grass, path, sand"),
        ('nearest(view, "stone", "ores")', "`nearest` does not take 'ores'; it takes: "),
        ('view.known("zombie")', "`known` does not take 'zombie'; it takes: "),
        ('explore(view, "mountain", dig=True)', "`explore` does not take 'mountain'"),
        ('scout(view, "cow")', "`scout` does not take 'cow'"),
    ],
)
def test_a_name_that_the_world_does_not_have_is_refused_before_the_code_runs(line: str, said: str) -> None:
    """It may stand in a branch that no dry run comes to."""
    source = f'def look(view):\n    if view.steps > 9000:\n        {line}\n    view = yield "noop"\n'
    host = open_host(registry.get("crafter"), lanes=1, mode="trusted", seed=1)
    try:
        told = host.admit("action", source)
        assert (told.admitted, told.rule, told.line) == (False, "text", 3)
        assert told.message.startswith(said)
        mine = source.replace("def look", "def nearest(name):\n    return name\n\n\ndef look")
        refused = host.admit("action", mine).rule == "text"
        assert refused != ("nearest(view" in line), "a function of its own takes any"
    finally:
        host.close()
