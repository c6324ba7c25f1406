"""What goes wrong with the game or the client: one sentence each, recovery within bounds, no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.training.rollouts.dry_views import DRY_EPISODES, DRY_STEPS, dry_views
from rlgpt.training.worlds.minedojo.bridge import Bridge, MineDojoError
from rlgpt.training.worlds.minedojo.env import MineDojoEnv
from rlgpt.training.worlds.minedojo.host_side import NOOP
from rlgpt.training.worlds.minedojo.processes import is_alive, marked, records_in, sweep, sweep_folder
from rlgpt.training.worlds.minedojo.settings import Settings, folder
from rlgpt.training.worlds.minedojo.world import MineDojoWorld
from tests.worlds.minedojo.conftest import Double, Played

MILK = "harvest_milk_with_empty_bucket_and_cow"


def until_truncated(env: MineDojoEnv, limit: int = 100) -> int:
    for step in range(limit):
        if env.step(NOOP).truncated:
            return step
    raise AssertionError("the episode was not truncated")


def nothing_left(played: Played) -> bool:
    """No process of any of the world's runs is alive once it is closed."""
    played.world.close()
    return all(
        not marked(event.detail["run"]) for event in played.events if event.kind == "process" and "run" in event.detail
    )


def test_game_killed_in_an_episode_truncates_it_and_the_next_reset_plays(
    launching_world: Callable[..., Played],
) -> None:
    played = launching_world("--die-after", "12")
    env = played.world.make(MILK)
    env.reset(0)
    until_truncated(env)
    fault = next(event for event in played.events if event.kind == "fault")
    assert "game" in fault.sentence.lower() and "\n" not in fault.sentence
    with pytest.raises(MineDojoError, match="reset starts another"):
        env.step(NOOP)
    env.reset(1)
    assert not env.step(NOOP).truncated
    env.close()
    assert nothing_left(played)


def test_stalled_game_is_given_up_in_time(double_world: Callable[..., Played]) -> None:
    played = double_world(options=("--stall-after", "8"), step_timeout=2.0)
    env = played.world.make(MILK)
    env.reset(0)
    until_truncated(env)
    assert "stalled" in played.events[1].sentence or "did not answer" in played.events[1].sentence
    env.close()
    assert nothing_left(played)


def test_a_game_that_always_dies_stops_after_the_allowed_restarts(launching_world: Callable[..., Played]) -> None:
    played = launching_world(script="echo 'Error: no GL context'; exit 1", restarts=1, reset_timeout=60)
    env = played.world.make(MILK)
    with pytest.raises(MineDojoError, match="2 times in a row") as caught:
        env.reset(0)
    assert caught.value.kind == "restarts"
    assert "no GL context" in caught.value.last_words
    assert played.kinds().count("restart") == 1
    assert nothing_left(played)


def test_missing_java_is_said_with_the_games_own_words(launching_world: Callable[..., Played]) -> None:
    played = launching_world(script="java_that_is_not_there -jar game.jar", restarts=0, reset_timeout=60)
    env = played.world.make(MILK)
    with pytest.raises(MineDojoError) as caught:
        env.reset(0)
    assert "command not found" in caught.value.last_words


def test_wrong_java_and_a_missing_jar_are_named_where_the_games_words_help_nobody(
    launching_world: Callable[..., Played], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.2\" 2022-01-18' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    played = launching_world(script="echo 'BUILD FAILED in 4s'; exit 1", restarts=0, reset_timeout=60)
    env = played.world.make(MILK)
    with pytest.raises(MineDojoError, match=r"BUILD FAILED.*built game is missing.*cp .*is Java 17\.0\.2.*JDK 8"):
        env.reset(0)


def test_taken_port_is_replaced_by_a_free_one(launching_world: Callable[..., Played]) -> None:
    """Malmo falls back to a free port and says which; the client must follow it."""
    played = launching_world(script=f'shift 2; exec {sys.executable} {_double()} --port 1 "$@"')
    env = played.world.make(MILK)
    env.reset(0)
    assert not env.step(NOOP).truncated
    env.close()


def _double() -> Path:
    return Path(__file__).with_name("double.py")


def test_nobody_on_the_given_port_is_one_sentence(double_world: Callable[..., Played]) -> None:
    played = double_world(restarts=0)
    env = played.world.make(MILK)
    env._port, env._has_room = 1, True
    with pytest.raises(MineDojoError, match="port"):
        env.reset(0)


def test_interpreter_without_minedojo_is_one_sentence_with_the_cure() -> None:
    with pytest.raises(MineDojoError, match=r"not an interpreter with MineDojo.*rlgpt minedojo install") as caught:
        Bridge(Settings(python=sys.executable))
    assert caught.value.kind == "hello"


def test_missing_interpreter_is_one_sentence_with_the_cure() -> None:
    with pytest.raises(MineDojoError, match="run `rlgpt minedojo install`"):
        Bridge(Settings(python="/nowhere/python"))


def test_an_interpreter_without_the_bridges_own_package_says_which(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(MineDojoError, match=r"No module named 'msgpack'.*rlgpt minedojo install"):
        Bridge(Settings(python=str(bare)))


def test_a_program_that_is_no_python_is_one_sentence() -> None:
    with pytest.raises(MineDojoError, match="not an interpreter with MineDojo"):
        Bridge(Settings(python="/bin/true"))


def test_child_out_of_memory_is_one_sentence(double_world: Callable[..., Played]) -> None:
    played = double_world(memory_mb=220, restarts=0, hello_timeout=60.0)
    env = played.world.make(MILK)
    with pytest.raises(MineDojoError) as caught:
        env.reset(0)
    assert "memory" in str(caught.value).lower() + caught.value.last_words.lower()
    assert nothing_left(played)


def test_killed_child_is_replaced(double_world: Callable[..., Played]) -> None:
    played = double_world()
    env = played.world.make(MILK)
    env.reset(0)
    os.kill(played.events[0].detail["pid"], signal.SIGKILL)
    until_truncated(env, 3)
    assert "signal 9" in played.events[1].sentence
    env.reset(1)
    assert not env.step(NOOP).truncated
    env.close()


def test_children_of_a_killed_worker_end_and_are_swept(
    client_python: Path, start_double: Callable[..., Double], own_home: Path
) -> None:
    code = (
        "import sys, time\n"
        "from rlgpt.training.worlds.minedojo.settings import Settings\n"
        "from rlgpt.training.worlds.minedojo.world import MineDojoWorld\n"
        f"settings = Settings(python={str(client_python)!r}, ports={str(start_double().port)!r})\n"
        f"env = MineDojoWorld(settings).make({MILK!r})\n"
        "env.reset(0)\nprint('ready', flush=True)\ntime.sleep(600)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    (record,) = [found for found in records_in(folder() / "runs") if found.owner_pid == worker.pid]
    assert is_alive(record.pid, record.started)
    assert sweep([record]) == []  # its owner lives: not ours to end
    worker.kill()
    worker.wait()
    sweep_folder(folder() / "runs")
    assert not is_alive(record.pid, record.started)
    assert marked(record.run) == [] and not (folder() / "runs" / record.run).exists()


# ---- a lost game wherever something steps a world --------------------------------------------------------
def test_a_game_lost_in_the_dry_views_ends_one_sequence(launching_world: Callable[..., Played]) -> None:
    played = launching_world("--die-after", "12")
    sequences = dry_views(played.world, MILK, 0)
    assert len(sequences) == DRY_EPISODES and all(sequences)
    assert any(len(views) <= DRY_STEPS for views in sequences)
    assert "fault" in played.kinds()
    assert nothing_left(played)


def test_a_child_killed_between_a_step_and_its_frame_truncates_the_episode(double_world: Callable[..., Played]) -> None:
    played = double_world()
    env = played.world.make(MILK)
    env.reset(0)
    assert not env.step(NOOP).truncated
    os.kill(played.events[0].detail["pid"], signal.SIGKILL)
    assert env.frame() == b""
    assert env.step(NOOP).truncated
    with pytest.raises(MineDojoError, match="reset starts another"):
        env.step(NOOP)
    env.reset(1)
    assert env.frame()
    env.close()


# ---- what the game sends ---------------------------------------------------------------------------------
UNUSABLE = [
    "xpos=NaN", "yaw=Infinity", "life=NaN", "zpos=null", 'ypos="low"', "xpos=1e308", "inventory=", "biome_id=NaN",
    "voxels=[]", "rays=[1]", "inventory=[{}]", "light_level=-Infinity", "pitch=[]", "food={}", "air=NaN",
]  # fmt: skip
TOLERATED = ["is_alive=", "nearby_furnace=NaN", "stat=3"]


@pytest.mark.parametrize(
    ("spoilt", "lost"),
    [
        *((s, True) for s in UNUSABLE[:3]),
        *(pytest.param(s, True, marks=pytest.mark.slow) for s in UNUSABLE[3:]),
        *(pytest.param(s, False, marks=pytest.mark.slow) for s in TOLERATED),
    ],
)
def test_an_observation_that_cannot_be_used_is_a_lost_game_with_a_sentence(
    double_world: Callable[..., Played], spoilt: str, lost: bool
) -> None:
    played = double_world(options=("--spoil", f"{spoilt}@9"))
    env = played.world.make(MILK)
    for seed in range(3):
        env.reset(seed)
        for _ in range(10):
            if env.step(NOOP).truncated:
                break
            env.observe(), env.view(True), env.progress_key(), env.frame()
    faults = [event.sentence for event in played.events if event.kind == "fault"]
    assert len(faults) == lost, faults
    assert all("The game" in fault and "\n" not in fault for fault in faults)
    env.close()


# ---- the port --------------------------------------------------------------------------------------------
def test_two_sessions_do_not_steer_one_game(double_world: Callable[..., Played]) -> None:
    first = double_world()
    env = first.world.make(MILK)
    env.reset(0)
    second = MineDojoWorld(first.world.settings)
    with pytest.raises(MineDojoError, match=rf"steered by another session \(process {os.getpid()}\)"):
        second.make(MILK).reset(0)
    assert not env.step(NOOP).truncated
    env.close()
    first.world.close()
    other = second.make(MILK)
    other.reset(0)
    other.close()
    second.close()


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_games_killed_at_each_of_their_first_forty_env_steps_leave_views_and_no_process(
    launching_world: Callable[..., Played], tmp_path: Path
) -> None:
    """Whole sessions, one for each of the steps, are in `test_kills`."""
    begun = tmp_path / "begun"
    begun.mkdir()
    script = (
        f"n=$(($(ls {begun} | wc -l) + 1)); touch {begun}/$n\n"
        f'if [ $n -le 40 ]; then exec {sys.executable} {_double()} --die-after $n "$@"; fi\n'
        f'exec {sys.executable} {_double()} "$@"'
    )
    played = launching_world(script=script, restarts=100)
    for seed in range(40):
        sequences = dry_views(played.world, MILK, seed)
        assert len(sequences) == DRY_EPISODES and all(sequences)
        runs = [event.detail["run"] for event in played.events if event.kind == "process"]
        assert all(not marked(run) for run in runs[:-1]), "only the game that is played is alive"
        if len(runs) > 40:
            break
    assert played.kinds().count("fault") == 40
    assert nothing_left(played)
