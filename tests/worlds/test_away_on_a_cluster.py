"""Games on the nodes of a Ray cluster: nothing but time depends on it, nor on a node that is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlgpt.training.cluster import nodes
from rlgpt.training.cluster.games import ClusterGames, placed
from rlgpt.training.host.api import Host
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.away.channel import Channel, GameLost, pack
from rlgpt.training.worlds.away.world import PLAYER, AwayWorld
from rlgpt.training.worlds.optional_parts import WorldEvent
from rlgpt.training.worlds.protocol import World
from tests.options.toys import host_of
from tests.patience import PATIENCE
from tests.processes import lives
from tests.ray_cluster import NEEDS_RAY, Machines
from tests.worlds import slow
from tests.worlds.away_play import evaluation, training, trial, wander

pytestmark = NEEDS_RAY
NAMES = {"corridor": slow.CORRIDOR, "crafter": slow.CRAFTER}


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path.cwd()))  # the worlds of the tests
        patch.setattr(nodes, "LOOK", nodes.LOOK * PATIENCE)
        machines = Machines()
        try:
            yield machines
        finally:
            machines.remove()


@pytest.fixture(scope="module")
def node(machines: Machines) -> Any:
    return machines.add(2, resources={"minecraft": 3})


@pytest.fixture(params=list(NAMES))
def local(request: pytest.FixtureRequest) -> Iterator[tuple[str, World, Host]]:
    world = registry.get(NAMES[request.param])
    host = open_host(world, lanes=8, mode="locked", seed=5)
    assert host.admit("action", wander(world).source).admitted
    yield NAMES[request.param], world, host
    host.close()


@pytest.mark.usefixtures("node")
def test_evaluation_and_checkpoint_are_the_same(local: tuple[str, World, Host], machines: Machines) -> None:
    name, world, host = local
    away = placed(world, name, machines.address)
    assert isinstance(away, AwayWorld)
    assert evaluation(away, host) == evaluation(world, host)  # type: ignore[arg-type]
    assert training(away, host) == training(world, host)  # type: ignore[arg-type]
    away.close()


def process(channel: Channel) -> int:
    return int(channel.place.rsplit(" ", 1)[1])


class Watched(ClusterGames):
    """Does something before one of all messages."""

    sent = 0
    at = 0

    def __init__(self, address: str, world: str) -> None:
        super().__init__(address, world)
        self.channels: list[Channel] = []

    def open(self, side: str, resource: str = "") -> Channel:
        channel = super().open(side, resource)
        self.channels.append(channel)
        send = channel.send

        def counted(message: bytes) -> None:
            self.sent += 1
            if self.sent == self.at:
                self.happens(channel)
            send(message)

        channel.send = counted  # type: ignore[method-assign]
        return channel

    def happens(self, channel: Channel) -> None:
        os.kill(process(channel), signal.SIGKILL)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("at", [30, 45])
def test_an_actor_that_is_killed_changes_nothing(machines: Machines, at: int) -> None:
    world = registry.get(slow.CORRIDOR)
    games = Watched(machines.address, slow.CORRIDOR)
    games.at = at
    away: Any = AwayWorld(world, slow.CORRIDOR, games)
    events: list[WorldEvent] = []
    away.report = events.append
    assert trial(away, host_of(world)) == trial(world, host_of(world))
    assert [event.kind for event in events] == ["fault", "restart"] and "is gone" in events[0].sentence
    away.close()


def test_games_are_spread_over_the_nodes_that_were_looked_at(machines: Machines, node: Any) -> None:
    """The head, which was not, has no CPU but could play."""
    second = machines.add(1)
    games = ClusterGames(machines.address, slow.CORRIDOR)
    channels = [games.open(PLAYER) for _ in range(8)]
    for channel in channels:
        channel.send(pack(["play", [], []]))  # a game that is not made answers too
        channel.receive(100 * PATIENCE)
    places = [machines.of(process(channel)) for channel in channels]
    for channel in channels:
        channel.end()
    machines.lose(second)
    assert sorted(map(places.count, (node, second))) == [4, 4]


@pytest.mark.usefixtures("node")
def test_games_that_need_something_go_where_it_is(machines: Machines) -> None:
    games = ClusterGames(machines.address, slow.CORRIDOR)
    assert games.room("minecraft") == 3
    channel = games.open(PLAYER, "minecraft")
    channel.end()
    with pytest.raises(GameLost, match=r"it offers no lava \(ray start --resources '\{\"lava\": 4\}'\)"):
        games.open(PLAYER, "lava")


@pytest.mark.usefixtures("node")
def test_a_node_that_is_lost_changes_nothing(machines: Machines) -> None:
    world = registry.get(slow.CORRIDOR)
    machines.add(2)
    games = Watched(machines.address, slow.CORRIDOR)

    def lose(channel: Channel) -> None:
        game = process(channel)
        machines.lose(machines.of(game))
        until = time.monotonic() + 100 * PATIENCE
        while lives(game):  # it sees for itself that its node is gone
            assert time.monotonic() < until, "the game lives on without its node"
            time.sleep(0.1)

    games.at, games.happens = 200, lose  # type: ignore[method-assign]
    away: Any = AwayWorld(world, slow.CORRIDOR, games)
    events: list[WorldEvent] = []
    away.report = events.append
    with closing(open_host(world, lanes=8, mode="locked", seed=5)) as host:
        assert host.admit("action", wander(world).source).admitted
        assert training(away, host, lanes=4) == training(world, host, lanes=4)
    assert {event.kind for event in events} == {"fault", "restart"}
    away.close()
