"""A world of somebody else fails in its own ways: one sentence says what failed, and where."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from rlgpt.agents.contracts import RewardTerm
from rlgpt.store import events, processes, tables
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.reader import Reader
from rlgpt.store.writer import Writer
from rlgpt.training import last_words
from rlgpt.training.options.observation import build_observation, make_env
from rlgpt.training.options.rewards import RewardStream
from rlgpt.training.session.creation import create
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.conformance import check
from rlgpt.training.worlds.faults import world_fault
from rlgpt.training.worlds.protocol import WorldFailed
from tests.store.copies import everything
from tests.worlds.corridor import CorridorEnv, CorridorWorld
from tests.worlds.failing import FAILS

WORLD = "tests.worlds.failing:make_failing"
LOOP = {"iterations": 0, "dev_first": 2, "dev_more": 0, "test_episodes": 1}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent.parent))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("fails", "sentence"),
    [
        ("raises", r"failed in failing\.py, line \d+: ValueError: the door is stuck and so is the window$"),
        ("leaves", r"failed in failing\.py, line \d+: SystemExit: 0$"),
        ("has no version", r"cannot be loaded: RuntimeError: no version here \(failing\.py, line \d+\)\.$"),
        ("gives up", r"^The simulator has no licence\.$"),
        ("has lost its tasks", r"^the world corridor has no task 'open_door'"),
        ("ends the process", r"^the worker died 4 times without getting further; its last words: "),
    ],
)
def test_a_session_ends_with_a_sentence_about_its_world(fails: str, sentence: str) -> None:
    folder = Path(create({"task": "open_door", "world": WORLD, "skills": "none"})["folder"])
    words = [sys.executable, "-P", "-m", "rlgpt.training.supervisor", str(folder)]
    assert subprocess.run(words, env=os.environ | {FAILS: fails}, check=False).returncode == 1
    with Reader(SessionFolder(folder)) as reader:
        history = reader.history_at()
    assert history.result == "failed" and re.search(sentence, history.reason), history.reason


@pytest.mark.parametrize(
    ("words", "fails", "sentence"),
    [
        (["resume"], "has lost its tasks", "has no task 'open_door'"),
        (["resume"], "", "The world 'tests.worlds.failing:make_failing' cannot be loaded"),
        (["resume", "--all"], "has lost its tasks", "has no task 'open_door'"),
        (["fork"], "has lost its tasks", "has no task 'open_door'"),
    ],
)
def test_a_session_whose_world_is_not_found_here_is_left_as_it_is(words: list[str], fails: str, sentence: str) -> None:
    folder = Path(create({"task": "open_door", "world": WORLD, "skills": "none", "loop": LOOP})["folder"])
    with Lease.acquire(folder), Writer(SessionFolder(folder)) as writer:
        writer.event(events.Started())
        writer.event(events.Phase("OpenIteration"))
        writer.add(tables.Iteration(sub_task=0, number=0))
        writer.event(events.Phase("Plan"))
    named = words if "--all" in words else [*words, folder.name]
    command = [sys.executable, "-P", "-m", "rlgpt.console.cli", *named]
    elsewhere = os.environ | ({FAILS: fails} if fails else {"PYTHONPATH": ""})
    before = everything(folder)
    told = subprocess.run(command, env=elsewhere, check=False, capture_output=True, text=True)
    assert told.returncode in (2, 4) and sentence in told.stderr, told
    assert everything(folder) == before and [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_threads_that_a_world_leaves_do_not_keep_a_session_from_its_end() -> None:
    folder = Path(create({"task": "open_door", "world": WORLD, "skills": "none", "loop": LOOP})["folder"])
    words = [sys.executable, "-P", "-m", "rlgpt.training.supervisor", str(folder)]
    assert subprocess.run(words, env=os.environ | {FAILS: "leaves a thread"}, timeout=300, check=False).returncode == 0
    with Reader(SessionFolder(folder)) as reader:
        assert reader.history_at().result in ("finished", "succeeded")
    assert "threads that do not end are left: render loop" in (folder / "worker.log").read_text()


@pytest.mark.parametrize(
    ("fails", "code", "results"),
    [("leaves a process", 0, ("finished", "succeeded")), ("is killed beside its game", 1, ("failed",))],
)
def test_processes_that_a_world_leaves_are_ended_and_keep_no_session_from_its_end(
    fails: str, code: int, results: tuple[str, ...]
) -> None:
    folder = Path(create({"task": "open_door", "world": WORLD, "skills": "none", "loop": LOOP})["folder"])
    words = [sys.executable, "-P", "-m", "rlgpt.training.supervisor", str(folder)]
    value = processes.session_value(folder)
    try:
        run = subprocess.run(words, env=os.environ | {FAILS: fails}, timeout=300, check=False)
        assert run.returncode == code and not processes.marked(processes.SESSION, value)
    finally:
        processes.end_marked(processes.SESSION, value)
    with Reader(SessionFolder(folder)) as reader:
        assert reader.history_at().result in results


@pytest.mark.parametrize("fails", ["leaves a thread", "leaves a process", "leaves a program"])
def test_what_a_world_leaves_does_not_hold_its_check_up(fails: str) -> None:
    words = [sys.executable, "-P", "-m", "rlgpt.console.cli", "world", "check", WORLD]
    try:
        told = subprocess.run(
            words, env=os.environ | {FAILS: fails}, timeout=300, check=False, capture_output=True, text=True
        )
    finally:
        processes.end_marked(FAILS, fails)
    assert told.returncode == 0 and "the script book is sound" in told.stdout, told


def test_a_session_whose_observation_changes_its_shape_fails() -> None:
    settings = {"task": "open_door", "world": WORLD, "skills": "none", "method": {"arm": "rl"}}
    folder = Path(create(settings | {"budget": {"env_steps": 2_000}})["folder"])
    words = [sys.executable, "-P", "-m", "rlgpt.training.supervisor", str(folder)]
    subprocess.run(words, env=os.environ | {FAILS: "shrinks"}, check=False)
    with Reader(SessionFolder(folder)) as reader:
        history = reader.history_at()
    assert history.result == "failed"
    assert re.search(r"observed an array of shape \(\d+,\) at step 1 of an episode of open_door", history.reason)


def test_a_line_that_a_world_left_open_hides_no_last_words(capfd: pytest.CaptureFixture[str]) -> None:
    os.write(2, b"Loading " + b"." * 600)
    last_words.say("the reason")
    assert last_words.last(capfd.readouterr().err.splitlines())[-1] == "the reason"


def test_what_is_printed_after_the_last_words_hides_nothing() -> None:
    assert last_words.last(["a", "last words: the reason", "bye"]) == ["a", "bye", "the reason"]
    assert last_words.last(["a", ""]) == ["a", ""]
    assert last_words.last([]) == []


def test_an_observation_that_is_no_number_never_reaches_a_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    world = registry.get(WORLD)
    stream = RewardStream((RewardTerm(term="task", weight=1.0),), world)
    observation = build_observation(world, world.default_features, stream)
    env = make_env(world, "open_door", observation)
    env.reset(1)
    observation.read(env, stream, 1.0)
    monkeypatch.setenv(FAILS, "sees nothing")
    with pytest.raises(WorldFailed, match="observed cell = nan at step 0 of an episode of open_door"):
        observation.read(env, stream, 1.0)


def test_a_picture_that_is_not_of_bytes_never_reaches_a_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    world = registry.get(WORLD)
    stream = RewardStream((RewardTerm(term="task", weight=1.0),), world)
    observation = build_observation(world, ["pixels"], stream)
    env = make_env(world, "open_door", observation)
    env.reset(1)
    observation.read(env, stream, 1.0)
    shares = env.pixels() / np.float32(255)
    monkeypatch.setattr(CorridorEnv, "pixels", lambda _: shares)
    with pytest.raises(WorldFailed, match=r"a picture of float32 at step 0 of an episode of open_door; uint8"):
        observation.read(env, stream, 1.0)


MODULES = {
    "raises": (
        "raise ValueError('no licence\\nfor this machine')",
        r"ValueError: no licence for this machine \(.*line 1\)",
    ),
    "leaves": ("import sys\nsys.exit()", r"SystemExit \(leaves\.py, line 2\)"),
    "breaks": ("def make_world(:", "SyntaxError: "),
    "refuses": ("def make_world():\n    return 1 / 0", r"ZeroDivisionError: division by zero \(refuses\.py, line 2\)"),
    "cannot_tell": (
        "class Made:\n    @property\n    def tasks(self):\n        raise OSError('the list is gone')\n\n"
        "def make_world():\n    return Made()",
        r"'cannot_tell:make_world' cannot be loaded: OSError: the list is gone \(cannot_tell\.py, line 4\)",
    ),
    "misspells": (
        "import numpy\n\ndef make_world():\n    return numpy.bool8",
        r"AttributeError: module 'numpy' has no attribute 'bool8' \(misspells\.py, line 4\)",
    ),
    "misspells_late": (
        "class Made:\n    @property\n    def tasks(self):\n        return self.task\n\n"
        "def make_world():\n    return Made()",
        r"AttributeError: 'Made' object has no attribute 'task'.* \(misspells_late\.py, line 4\)",
    ),
    "asks": ("def make_world(size):\n    pass", "TypeError: make_world.* missing 1 required positional argument"),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_cannot_be_loaded_is_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, sentence = MODULES[name]
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(registry.UnknownWorld, match=sentence) as refused:
        registry.get(f"{name}:make_world")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [":make", ".relative:make", "a b:make", "json:loads", "builtins:input"])
def test_a_name_that_leads_to_no_world_is_a_sentence(name: str) -> None:
    with pytest.raises(registry.UnknownWorld, match="cannot be loaded"):
        registry.get(name)


ANSWERS = {
    "frame": (None, "frame.. is None, no bytes"),
    "view": ("text", "view.True. is 'text', no bytes"),
    "progress_key": ((1, 2), "progress_key.. is .1, 2., no whole number"),
    "novelty": (0.5, "novelty.. is 0.5, no whole number"),
    "milestones": (["take_key"], "milestones.. is .*, no frozenset of names"),
    "interrupt": (None, "interrupt.. is None, neither True nor False"),
}


@pytest.mark.parametrize("method", ANSWERS)
def test_the_check_sees_an_answer_of_the_wrong_type(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value, sentence = ANSWERS[method]
    monkeypatch.setattr(CorridorEnv, method, lambda *_: value)
    finding = next(one for one in check(CorridorWorld()) if one.what == "answers are of the right types")
    assert not finding.ok and re.search(sentence, finding.why), finding.why


@pytest.mark.parametrize("reward", [None, "one", np.nan, np.array([1.0])])
def test_the_check_sees_a_reward_that_is_no_number(reward: object, monkeypatch: pytest.MonkeyPatch) -> None:
    step = CorridorEnv.step
    monkeypatch.setattr(CorridorEnv, "step", lambda env, command: step(env, command)._replace(reward=reward))
    finding = next(one for one in check(CorridorWorld()) if one.what == "answers are of the right types")
    assert not finding.ok and "reward" in finding.why, finding.why


@pytest.mark.parametrize(("two_heads", "command"), [(False, (40_000,)), (True, [0, 1]), (True, (np.int64(0), 1))])
def test_the_check_sees_a_command_that_cannot_be_recorded(
    two_heads: bool, command: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = CorridorWorld.native_action
    bent = lambda world, action: command if any(action) else plain(world, action)  # noqa: E731
    monkeypatch.setattr(CorridorWorld, "native_action", bent)
    finding = next(one for one in check(CorridorWorld(two_heads)) if one.what == "actions and commands fit")
    sentence = r"native_action\(\) gives .*; a tuple of \d plain ints"
    assert not finding.ok and re.search(sentence, finding.why), finding.why


@pytest.mark.parametrize(
    ("package", "env"), [("", "sibling_env"), ("of_somebody.worlds.made", "of_somebody.games.sibling_env")]
)
def test_an_error_of_the_modules_beside_that_of_the_world_is_the_world_s(
    package: str, env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for module, source in (
        (f"{package}.sibling_world".strip("."), "class World:\n    name = 'siblings'\n"),
        (env, "def step():\n    raise ValueError('the door is stuck')\n"),
    ):
        path = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    world = import_module(f"{package}.sibling_world".strip(".")).World()
    with pytest.raises(ValueError, match="stuck") as raised:
        import_module(env).step()
    sentence = "The world siblings failed in sibling_env.py, line 2: ValueError: the door is stuck"
    assert world_fault(raised.value, world) == sentence
    with pytest.raises(ValueError, match="shapes") as ours:
        np.zeros(2) + np.zeros(3)
    assert not world_fault(ours.value, world)
