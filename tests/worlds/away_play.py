"""Evaluation, trial and training of a small slow world, as values to compare: they are equal wherever its games are."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from rlgpt.agents.contracts import RewardTerm
from rlgpt.training.host.api import Action, Host, Programs, source_hash
from rlgpt.training.options.slots import ActionSpace, CodedAction, build_slots, noop_of
from rlgpt.training.ppo.run import train
from rlgpt.training.rollouts.evaluation import evaluate
from rlgpt.training.rollouts.trials import PrefixItem, try_item
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.away.channel import Channel
from rlgpt.training.worlds.protocol import World
from tests.options.toys import GET_KEY, OPEN_DOOR, configuration, term
from tests.training.test_lanes import Uniform

SEEDS = [episode_seed(3, "dev", index) for index in range(8)]
TASKS = {"corridor": "take_coin", "crafter": "crafter_score"}
WANDER = """
def available(view):
    return rng.random() < 0.5


def wander(view):
    for _ in range(rng.randint(1, 4)):
        view = yield rng.choice({ways})
"""


def wander(world: World) -> CodedAction:
    source = WANDER.format(ways=tuple(primitive.name for primitive in world.primitives[:3]))
    return CodedAction("wander", source, has_available=True)


def evaluation(world: World, host: Host, lanes: int = 3) -> Any:
    option = wander(world)
    slots, actions = build_slots([option], (), max_option_steps=8, follow_plan=False)
    allowed = np.ones(world.action_nvec[0], np.bool_)
    programs = Programs({source_hash(option.source): option.source}, actions)
    space = ActionSpace(world.action_nvec, noop_of(world), allowed, slots, programs)
    terms = (RewardTerm(term="task", weight=1.0), RewardTerm(term="distance", weight=0.1, argument=world.targets[0]))
    return evaluate(
        world, TASKS[world.name], Uniform(space, terms), host, SEEDS, horizon=40, record_actions=True, n_envs=lanes
    )  # fmt: skip


def training(world: World, host: Host, lanes: int = 3, **more: Any) -> bytes:
    config = configuration(
        observation=[feature for feature in world.default_features if feature != "time_left"],
        primitives=[primitive.name for primitive in world.primitives[:3]], options=["wander"],
        reward=[term("world"), term("distance", 0.1, world.targets[0])], horizon=30, hyper={"n_envs": lanes},
        env_steps=448, **more,
    )  # fmt: skip
    return train(world, TASKS[world.name], config, [wander(world)], host, seed=4, device="cpu").checkpoint


def trial(world: World, host: Host) -> Any:
    sources = {source_hash(source): source for source in (GET_KEY, OPEN_DOOR)}
    result = try_item(
        world, "take_coin", prefix=(PrefixItem("view.key", Action(source_hash(GET_KEY))),),
        action=Action(source_hash(OPEN_DOOR)), done_when="view.opened", sources=sources, host=host, seeds=SEEDS,
        max_steps=20,
    )  # fmt: skip
    assert result.outcome == "accepted"
    return result


def killed_at(opened: Callable[[], Channel], messages: set[int]) -> Callable[[], Channel]:
    """Games that are killed just before these of all their messages. A message whose sending fails, because its game is
    gone already, is sent a second time on the same channel and kills nothing then."""
    sent = [0]

    def open_mortal() -> Channel:
        channel = opened()
        send = channel.send

        def send_or_die(message: bytes) -> None:
            sent[0] += 1
            if sent[0] in messages:
                with suppress(ProcessLookupError):
                    os.kill(int(channel.place.rsplit(" ", 1)[1]), signal.SIGKILL)
            send(message)

        channel.send = send_or_die  # type: ignore[method-assign]
        return channel

    return open_mortal
