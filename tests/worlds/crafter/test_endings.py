"""What killed the agent is a fact of the world: each way to die, and how it stood then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlgpt.training.worlds.crafter import layout, names
from rlgpt.training.worlds.crafter.env import CrafterEnv
from rlgpt.training.worlds.crafter.ground import add
from rlgpt.training.worlds.optional_parts import ending_of
from tests.worlds.crafter.play import world

NEEDS = {"food": layout.ITEM + 1, "drink": layout.ITEM + 2, "energy": layout.ITEM + 3}


def beside(env: CrafterEnv, kind: int, way: int = 0, heading: int = 0) -> None:
    """Somebody on the neighbouring cell, on open ground."""
    simulation = env._simulation
    x, y = (int(v) for v in simulation.objects[0, [layout.X, layout.Y]])
    dx, dy = names.DIRECTIONS[way]
    simulation.material[x - 4 : x + 5, y - 4 : y + 5] = layout.PATH
    add(simulation.state, simulation.occupant, simulation.objects, kind, x + dx, y + dy, 5, heading)


def zombie(env: CrafterEnv) -> None:
    beside(env, layout.ZOMBIE)


def arrow(env: CrafterEnv) -> None:
    beside(env, layout.ARROW, way=0, heading=1)  # to the left of the agent, flying to the right


def lava(env: CrafterEnv) -> None:
    simulation = env._simulation
    x, y = (int(v) for v in simulation.objects[0, [layout.X, layout.Y]])
    simulation.material[x + 1, y] = layout.LAVA
    simulation.occupant[x + 1, y] = 0


def without(need: str) -> Callable[[CrafterEnv], None]:
    def arrange(env: CrafterEnv) -> None:
        env._simulation.state[NEEDS[need]] = 0
        env._simulation.state[layout.RECOVER2] = -30

    return arrange


@pytest.mark.parametrize(
    ("arrange", "command", "cause"),
    [
        (zombie, "noop", "zombie"),
        (arrow, "noop", "arrow"),
        (lava, "move_right", "lava"),
        (without("drink"), "noop", "thirst"),
        (without("food"), "noop", "hunger"),
        (without("energy"), "noop", "fatigue"),
    ],
)
def test_the_world_says_what_killed(arrange: Callable[[CrafterEnv], None], command: str, cause: str) -> None:
    env = world().make("collect_diamond")
    env.reset(3)
    assert ending_of(env).cause == ""
    state = env._simulation.state
    state[layout.ITEM] = state[layout.LAST_HEALTH] = state[layout.REWARDED_HEALTH] = 1
    arrange(env)
    for _ in range(40):
        if env.step((names.ACTIONS.index(command),)).terminated:
            break
    ending = ending_of(env)
    assert ending.cause == cause
    assert ending.vitals["health"] == 0 and set(ending.vitals) == {*names.VITALS, "daylight"}
    again = world().make("collect_diamond")
    again.restore(env.save())
    assert ending_of(again) == ending


def test_who_lives_has_no_cause() -> None:
    env = world().make("collect_diamond")
    env.reset(3)
    state = env._simulation.state
    zombie(env)
    for _ in range(10):
        env.step((0,))
    assert 0 < state[layout.ITEM] < 9, "it was hit"
    assert ending_of(env).cause == "" and ending_of(env).vitals["health"] == state[layout.ITEM]
