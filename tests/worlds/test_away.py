"""Games in processes of their own: nothing but time depends on where a game is, nor on how often one is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgpt.console.commands import children
from rlgpt.console.commands.failure import Failure
from rlgpt.store.errors import MissingExtra
from rlgpt.training.cluster import connect
from rlgpt.training.cluster.connect import NoCluster
from rlgpt.training.cluster.games import check_place, placed
from rlgpt.training.host.api import Host
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.service.__main__ import answer
from rlgpt.training.worlds import conformance, optional_parts, registry
from rlgpt.training.worlds.away import env as env_module
from rlgpt.training.worlds.away.channel import Channel, GameLost, pack, unpack
from rlgpt.training.worlds.away.env import MAX_RESTARTS
from rlgpt.training.worlds.away.player import PARTS
from rlgpt.training.worlds.away.process import GameProcess
from rlgpt.training.worlds.away.world import PARTS as WORLD_PARTS
from rlgpt.training.worlds.away.world import PLAYER, AwayWorld, LocalGames
from rlgpt.training.worlds.minedojo.settings import Settings
from rlgpt.training.worlds.minedojo.world import MineDojoWorld
from rlgpt.training.worlds.optional_parts import WorldEvent
from rlgpt.training.worlds.protocol import UnknownTask, World, WorldFailed
from tests.options.toys import host_of
from tests.worlds import slow
from tests.worlds.away_play import evaluation, killed_at, training, trial, wander

NAMES = {"corridor": slow.CORRIDOR, "crafter": slow.CRAFTER}


def open_here() -> Channel:
    return GameProcess(PLAYER)


class Opened(LocalGames):
    """Games that a test opens."""

    def __init__(self, opened: Callable[[], Channel]) -> None:
        self.opened = opened

    def open(self, side: str, resource: str = "") -> Channel:
        assert (side, resource) == (PLAYER, "")
        return self.opened()


class Away:
    """A world with its games away, and what it told of them."""

    def __init__(self, name: str, opened: Callable[[], Channel] = open_here) -> None:
        self.events: list[WorldEvent] = []
        self.world: Any = AwayWorld(registry.get(name), name, Opened(opened))
        self.world.report = self.events.append


@pytest.fixture
def away() -> Iterator[Callable[..., Away]]:
    made: list[Away] = []

    def make(*arguments: Any) -> Away:
        made.append(Away(*arguments))
        return made[-1]

    yield make
    for each in made:
        each.world.close()


@pytest.fixture(scope="module", params=list(NAMES))
def local(request: pytest.FixtureRequest) -> Iterator[tuple[str, World, Host]]:
    world = registry.get(NAMES[request.param])
    host = open_host(world, lanes=8, mode="locked", seed=5)
    assert host.admit("action", wander(world).source).admitted
    yield NAMES[request.param], world, host
    host.close()


def test_an_evaluation_is_the_same(local: tuple[str, World, Host], away: Callable[..., Away]) -> None:
    name, world, host = local
    assert evaluation(away(name).world, host) == evaluation(world, host)


def test_a_checkpoint_is_the_same(local: tuple[str, World, Host], away: Callable[..., Away]) -> None:
    name, world, host = local

    assert training(away(name).world, host) == training(world, host)


def test_a_trial_is_the_same(away: Callable[..., Away]) -> None:
    world = registry.get(slow.CORRIDOR)
    here = trial(world, host_of(world))
    messages = {9, 20, 21, 60}
    mortal = away(slow.CORRIDOR, killed_at(open_here, messages))
    assert trial(away(slow.CORRIDOR).world, host_of(world)) == trial(mortal.world, host_of(world)) == here
    assert [event.kind for event in mortal.events].count("restart") >= len(messages) - 1


def test_games_that_are_killed_change_nothing(local: tuple[str, World, Host], away: Callable[..., Away]) -> None:
    name, world, host = local
    mortal = away(name, killed_at(open_here, {2, 30, 31, 101}))
    assert evaluation(mortal.world, host) == evaluation(world, host)
    assert training(mortal.world, host) == training(world, host)
    told = [event for event in mortal.events if event.kind == "fault"]
    assert len(told) >= 3 and "died of signal 9" in told[0].sentence
    assert [event.kind for event in mortal.events].count("restart") == len(told)


def test_a_world_away_keeps_every_promise(away: Callable[..., Away]) -> None:
    findings = {finding.what: finding for finding in conformance.check(away(slow.CORRIDOR).world)}
    here = {finding.what: finding for finding in conformance.check(registry.get(slow.CORRIDOR))}
    parts = findings.pop("optional parts are well formed"), here.pop("optional parts are well formed")
    assert findings == here and all(finding.ok for finding in (*here.values(), *parts))
    assert parts[0].why == f"{parts[1].why}, report", "what the games tell is a row"


def test_a_message_asks_ahead_what_was_asked_before(away: Callable[..., Away]) -> None:
    sent: list[Any] = []

    def opened() -> Channel:
        channel = open_here()
        send = channel.send
        channel.send = lambda message: (sent.append(unpack(message)), send(message))[1]  # type: ignore[method-assign]
        return channel

    env = away(slow.CORRIDOR, opened).world.make("take_coin")
    env.reset(1)
    for _ in range(3):
        env.step((1,))
        assert env.distance("key") is not None and env.view(True) and env.frame()
    asked = [len(message[2]) for message in sent if message[0] == "play" and message[1]]
    alone = [message for message in sent if message[0] == "play" and not message[1]]
    assert len(alone) == 3 and asked[0] == asked[1] and asked[2] == asked[3] == asked[1] + 3
    env.close()


def test_a_parked_game_plays_another_task(away: Callable[..., Away]) -> None:
    place = away(slow.CORRIDOR)
    first = place.world.make("take_key")
    first.reset(1)
    where = first._channel.place
    first.close()
    second = place.world.make("take_coin")
    second.reset(1)
    assert second._channel.place == where and second.task.id == "take_coin"
    second.begin_step((1,))
    second.close()
    third = place.world.make("take_coin")
    third.reset(1)
    assert third._channel.place != where, "a game that owes an answer is not used again"
    third.close()


def test_an_episode_that_cannot_be_repeated_is_broken_off(away: Callable[..., Away]) -> None:
    place = away(slow.FORGETFUL, killed_at(open_here, {5}))
    env = place.world.make("take_coin")
    env.reset(1)
    steps = [env.step((1,)) for _ in range(3)]
    assert [step.truncated for step in steps] == [False, False, True] and env.steps == 2
    assert env.view(True) and env.frame() and env.novelty() and env.distance("coin")
    assert "does not repeat its episodes" in place.events[-1].sentence
    env.begin_step((1,))
    assert env.step((1,)).truncated
    env.begin_reset(2)
    env.reset(2)
    assert not env.step((1,)).truncated and env.steps == 1
    env.close()


def test_a_game_that_is_always_lost_ends_in_a_sentence(
    away: Callable[..., Away], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(env_module, "FIRST_BACKOFF", 0.0)
    place = away(slow.FAULTY)
    env = place.world.make("take_coin")
    env.reset(1)
    env.step((1,))
    env.step((1,))
    lost = rf"lost {MAX_RESTARTS + 1} times .*ConnectionError: the game closed its connect"
    with pytest.raises(WorldFailed, match=lost):
        env.step((1,))
    assert [event.kind for event in place.events].count("restart") == MAX_RESTARTS
    env.close()


def test_a_process_that_cannot_start_ends_in_a_sentence(
    away: Callable[..., Away], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(env_module, "FIRST_BACKOFF", 0.0)

    def nothing() -> Channel:
        raise GameLost("no process can be started for it: Cannot allocate memory")

    with pytest.raises(WorldFailed, match="Cannot allocate memory"):
        away(slow.CORRIDOR, nothing).world.make("take_coin")


def test_what_an_env_may_raise_is_raised_here(away: Callable[..., Away]) -> None:
    world = away(slow.CORRIDOR).world
    env = world.make("take_coin")
    env.reset(1)
    before = env.save()
    with pytest.raises(ValueError, match="not a saved corridor"):
        env.restore(b"damaged")
    assert env.save() == before and not env.step((1,)).truncated
    with pytest.raises(UnknownTask, match="no such task"):
        world.make("no such task")
    env.close()


def test_another_version_of_the_world_is_refused(away: Callable[..., Away], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.get(slow.CORRIDOR), "version", "2", raising=False)
    with pytest.raises(WorldFailed, match=r"is version 1 where its games run .* and 2 here: install the same"):
        away(slow.CORRIDOR).world.make("take_coin")


def test_only_slow_worlds_are_played_elsewhere() -> None:
    world = registry.get("crafter")
    assert placed(world, "crafter", "") is world
    with pytest.raises(WorldFailed, match="does not say that its env steps are slow"):
        placed(world, "crafter", "local")
    with pytest.raises(NoCluster, match="'mars' is no address"):
        placed(registry.get(slow.CORRIDOR), slow.CORRIDOR, "mars")
    assert isinstance(placed(registry.get(slow.CORRIDOR), slow.CORRIDOR, "local"), AwayWorld)
    minedojo = MineDojoWorld(Settings())
    assert placed(minedojo, "minedojo", "local") is minedojo, "its games are processes already"


def test_messages_keep_every_number() -> None:
    values = [2**64, -(2**70), 0.1, float("inf"), b"\0", None, True]
    assert unpack(pack(values)) == values
    assert unpack(pack([np.int64(-5), np.float32(0.1), frozenset("ba")])) == [-5, float(np.float32(0.1)), ["a", "b"]]
    for array in (np.arange(6, dtype="<i2").reshape(2, 3), np.zeros((0, 4), np.bool_)):
        back = unpack(pack(array))
        assert array.dtype == back.dtype and array.shape == back.shape
        assert (array == back).all() and back.flags.writeable
    with pytest.raises(TypeError):
        pack(object())


def test_without_ray_an_address_answers_with_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'rlgpt\[ray\]'"):
        check_place(registry.get(slow.CORRIDOR), "auto")
    check_place(registry.get(slow.CORRIDOR), "local")


def test_a_session_is_not_made_where_its_games_cannot_be_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.setenv("RLGPT_GAMES_ON", "local")
    asked = {"ask": "create", "settings": {"task": "collect_wood"}}
    assert "does not say that its env steps are slow" in answer(json.dumps(asked))["error"]
    asked["settings"]["world"] = slow.CRAFTER  # type: ignore[index]
    monkeypatch.setenv("RLGPT_GAMES_ON", "mars")
    assert "'mars' is no address of a Ray cluster" in answer(json.dumps(asked))["error"]
    assert not list(tmp_path.glob("sessions/*"))
    monkeypatch.setenv("RLGPT_GAMES_ON", "local")
    assert Path(answer(json.dumps(asked))["ok"]["folder"]).exists()


def test_a_session_on_a_cluster_and_only_its_games_there_exclude_each_other() -> None:
    with pytest.raises(Failure, match="choose one"):
        children.play_games_on("local", "auto")


def test_every_optional_part_of_an_env_and_of_a_world_is_one_away_too(away: Callable[..., Away]) -> None:
    """A part that a world has here and not away would change what is told of it."""
    parts = [part for part in vars(optional_parts).values() if getattr(part, "_is_protocol", False)]
    of_env = {part for part in parts if re.search(r"part of an Env\b", str(part.__doc__))}
    assert of_env == {*PARTS.values(), optional_parts.StepsElsewhere}
    of_world = {part for part in parts if re.search(r"part of a (slow )?World\b", str(part.__doc__))}
    assert of_world == {*WORLD_PARTS, optional_parts.MakesAhead, optional_parts.ReportsEvents}
    env = away(slow.CRAFTER).world.make("collect_wood")
    here = registry.get(slow.CRAFTER).make("collect_wood")
    for part in of_env - {optional_parts.StepsElsewhere}:
        assert optional_parts.offers(env, part) == optional_parts.offers(here, part), part
    for each in (env, here):
        each.reset(3)
        each.step((1,))
    assert optional_parts.survey_of(env) == optional_parts.survey_of(here)
    assert optional_parts.ending_of(env) == optional_parts.ending_of(here)
    env.close()
