"""Games behind a bridge in another process, as on another machine: the same games, the same faults, nothing left."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.training.worlds.away.channel import Channel
from rlgpt.training.worlds.away.process import GameProcess
from rlgpt.training.worlds.away.world import LocalGames
from rlgpt.training.worlds.minedojo import host_side
from rlgpt.training.worlds.minedojo.away import RESOURCE
from rlgpt.training.worlds.minedojo.bridge import MineDojoError
from rlgpt.training.worlds.minedojo.env import MineDojoEnv
from rlgpt.training.worlds.minedojo.processes import marked
from rlgpt.training.worlds.protocol import NativeAction
from tests.worlds.minedojo.conftest import Played
from tests.worlds.minedojo.test_kills import wait_for

MILK = "harvest_milk_with_empty_bucket_and_cow"
COMMANDS = [host_side.move("forward", turn=15), host_side.move("forward"), host_side.NOOP] * 3


class NextDoor(LocalGames):
    """Another machine, of which there is room for two games: its settings are the variables of this one."""

    def open(self, side: str, resource: str = "") -> Channel:
        assert resource == RESOURCE
        return GameProcess(side)

    def room(self, resource: str) -> int:
        return 2


def there(played: Played, **variables: object) -> Played:
    """The world with its games next door, where these variables are set."""
    settings = played.world.settings
    given = {"PYTHON": settings.python, "MALMO": settings.malmo, "PORTS": settings.ports, **variables}
    for name, value in given.items():
        os.environ[f"RLGPT_MINEDOJO_{name}"] = str(value)
    played.world.place_games(NextDoor())
    return played


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHON", "MALMO", "PORTS"):
        monkeypatch.setenv(f"RLGPT_MINEDOJO_{name}", "")


def told(env: MineDojoEnv, seed: int, commands: list[NativeAction]) -> list[object]:
    env.begin_reset(seed)
    env.reset(seed)
    seen: list[object] = [env.view(True), env.observe().tobytes(), env.frame()]
    for command in commands:
        env.begin_step(command)
        seen += [env.step(command), env.view(False), env.observe().tobytes(), env.ending(), env.novelty()]
    return [*seen, env.frame(), sorted(env.milestones())]


def test_a_game_elsewhere_is_the_same_game(double_world: Callable[..., Played]) -> None:
    here = double_world(options=("--seed", "3"))
    away = there(double_world(options=("--seed", "3")))
    assert away.world.max_envs == 2 and here.world.max_envs == 1
    envs = [played.world.make(MILK) for played in (here, away)]
    for seed in range(2):
        shown = [told(env, seed, COMMANDS) for env in envs]
        assert shown[0] == shown[1]
    for env in envs:
        env.close()
    again = away.world.make(MILK)
    told(again, 5, COMMANDS)
    assert away.kinds() == ["process"], "the parked game is used again"
    again.close()


def test_a_game_whose_machine_is_gone_is_started_elsewhere(launching_world: Callable[..., Played]) -> None:
    away = there(launching_world())
    env = away.world.make(MILK)
    env.reset(0)
    bridge = env._bridge
    assert bridge is not None and not env.step(host_side.NOOP).truncated
    os.kill(int(bridge._channel.place.rsplit(" ", 1)[1]), signal.SIGKILL)  # type: ignore[attr-defined]
    assert env.step(host_side.NOOP).truncated
    assert away.kinds() == ["process", "fault", "restart"] and "died of signal 9" in away.events[1].sentence
    run = str(away.events[0].detail["run"])
    assert wait_for(lambda: not marked(run), 60), "the game of a bridge that is gone ends"
    env.reset(1)
    assert not env.step(host_side.NOOP).truncated
    env.close()
    away.world.close()
    assert wait_for(lambda: not marked(str(away.events[-1].detail["run"])), 60)


def test_what_a_game_elsewhere_says_is_said_here(
    launching_world: Callable[..., Played], tmp_path: Path, double_world: Callable[..., Played]
) -> None:
    away = there(launching_world("--die-after", "12", restarts=0))
    env = away.world.make(MILK)
    env.reset(0)
    with pytest.raises(MineDojoError, match=r"failed 1 times .* \(process \d+\)") as caught:
        for _ in range(100):
            env.step(host_side.NOOP)
    assert caught.value.kind == "restarts" and "closed its connection" in caught.value.last_words
    env.close()
    nobody = there(double_world(), PYTHON=tmp_path / "nothing")
    with pytest.raises(MineDojoError, match=r"There is no interpreter with MineDojo at .*nothing") as missing:
        nobody.world.make(MILK).reset(0)
    assert missing.value.kind == "install"
    unread = there(double_world(), PORTS="many")
    with pytest.raises(MineDojoError, match="RLGPT_MINEDOJO_PORTS like 9000,9001"):
        unread.world.make(MILK).reset(0)
