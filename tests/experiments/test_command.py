"""`rlgpt experiment`: the bill comes first, and nothing starts without a yes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlgpt.console import cli
from rlgpt.console.commands import children, experiment
from rlgpt.store import folder
from rlgpt.store.errors import StoreError
from rlgpt.store.experiments import NoExperiment
from rlgpt.store.lease import Lease
from rlgpt.store.reader import Reader
from rlgpt.store.settings import LoopSettings, settle
from rlgpt.training.experiments import bill, requests
from rlgpt.training.experiments.__main__ import RUNNER, main
from rlgpt.training.experiments.declared import Undeclared
from rlgpt.training.experiments.requests import declared, need_folder, write_bundles
from rlgpt.training.experiments.running import Runner
from rlgpt.training.service.__main__ import answer
from rlgpt.training.session import creation
from rlgpt.training.session.creation import CannotCreate
from tests.store.keeping import PATIENCE, until
from tests.worlds.corridor import TASKS

BILL: dict[str, Any] = {
    "name": "critic-wake_up", "about": "with and without", "declared": 4, "sessions": 3, "tasks": ["wake_up"],
    "arms": ["rlgpt", "no critic"], "seeds": [0, 1], "llm": "openai", "env_steps": 1_500_000, "jobs": 2,
    "episodes_evaluated": 900, "env_steps_per_second": 1000.0, "rate_from": "a test", "hours": 0.5, "calls": 144,
    "usd": 1.25, "usd_at_most": 15.0, "unpriced": [], "gone": [], "failed": [],
}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def request(tmp_path: Path, seeds: list[int]) -> dict[str, Any]:
    settings = {"world": "tests.worlds.corridor:make_world", "llm": {"kind": "rules"}, "budget": {"env_steps": 500}}
    asked = {"kind": "critic", "name": "mine", "tasks": ["take_key"], "seeds": seeds, "settings": settings, "jobs": 1}
    return asked | {"to": str(tmp_path / "kept")}


def child(name: str, arguments: Any) -> Any:
    """What `children.ask` does, in this process."""
    return children.answered(json.dumps(answer(children.question(name, arguments))))


def test_the_bill_of_the_real_thing_is_a_record_and_an_unknown_task_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment.children, "ask", child)
    monkeypatch.setattr(bill, "PROBE", 256)
    world = ["--world", "tests.worlds.corridor:make_world", "--seeds", "1", "--env-steps", "2000", "--json"]
    assert cli.run(["experiment", "critic", "take_key", *world, "--dry-run"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["sessions"], told["env_steps"], told["usd"]) == ("bill", 2, 4000, 0.0)
    assert told["env_steps_per_second"] > 0 and told["hours"] > 0
    assert not folder.sessions()
    assert cli.run(["experiment", "critic", "fly", *world, "--dry-run"]) == 2
    assert "has no task 'fly'" in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize("horizon", [5, 30_000])
def test_a_task_shorter_or_longer_than_a_training_episode_may_be_is_priced(
    monkeypatch: pytest.MonkeyPatch, horizon: int
) -> None:
    monkeypatch.setitem(TASKS, "take_key", replace(TASKS["take_key"], horizon=horizon))
    monkeypatch.setattr(bill, "PROBE", 64)
    monkeypatch.setattr(bill, "WARM_UP", 64)
    settings = settle({"task": "take_key", "world": "tests.worlds.corridor:make_world"})
    assert bill.measured_rate(settings).env_steps_per_second > 0


def test_seeds_begin_where_they_are_told_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def bill_of(name: str, arguments: Any) -> Any:
        asked.append(arguments["request"])
        return BILL | {"seeds": arguments["request"]["seeds"]}

    monkeypatch.setattr(experiment.children, "ask", bill_of)
    words = ["experiment", "critic", "--seeds", "3", "--dry-run"]
    assert cli.run([*words, "--first-seed", "7"]) == 0 and asked[-1]["seeds"] == [7, 8, 9]
    assert "3 seeds, from 7" in capsys.readouterr().out
    assert cli.run(words) == 0 and asked[-1]["seeds"] == [0, 1, 2]
    assert cli.run([*words, "--first-seed", "-1"]) == 2 and len(asked) == 2


def test_arms_are_chosen_by_their_names(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment.children, "ask", child)
    monkeypatch.setattr(bill, "PROBE", 256)
    world = ["--world", "tests.worlds.corridor:make_world", "--seeds", "1", "--env-steps", "2000", "--json"]
    words = ["experiment", "critic", "take_key", *world, "--dry-run"]
    assert cli.run([*words, "--arm", "no critic"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["arms"], told["sessions"]) == (["no critic"], 1)
    assert cli.run([*words, "--arm", "critics"]) == 2
    assert "has no arm 'critics'; it has rlgpt, no critic" in json.loads(capsys.readouterr().out)["error"]


def test_nothing_starts_without_a_yes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment.children, "ask", lambda name, arguments: BILL)
    monkeypatch.setattr(experiment, "_follow", lambda request, json: pytest.fail("it was started"))
    assert cli.run(["experiment", "critic"]) == 2
    told = capsys.readouterr()
    assert "--yes starts it" in told.err
    assert "3 of 4 sessions to run, 2 at once: at most 1.5M env steps" in told.out
    assert "about 30m00s at 1000 env steps/s a session (a test)" in told.out
    assert "about 1.25 USD for 144 calls, never above 15.00 USD" in told.out


def test_sessions_that_failed_are_named_and_are_not_called_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    over = BILL | {"sessions": 0, "failed": ["261123-a (wake_up, rlgpt, seed 0)"]}
    monkeypatch.setattr(experiment.children, "ask", lambda name, arguments: over)
    assert cli.run(["experiment", "critic"]) == 0
    told = capsys.readouterr().out
    assert "1 session failed: 261123-a (wake_up, rlgpt, seed 0)" in told
    assert "`rlgpt store delete ID`" in told and "3 of 4 sessions are done" in told


def test_an_unknown_price_is_called_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unpriced = BILL | {"usd": None, "unpriced": ["mine"]}
    monkeypatch.setattr(experiment.children, "ask", lambda name, arguments: unpriced)
    assert cli.run(["experiment", "critic", "--dry-run"]) == 0
    assert "the price of mine is unknown; the budgets allow 15.00 USD" in capsys.readouterr().out


def test_a_session_is_not_there_before_its_skills_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process killed in between would leave one that no worker can go on with."""
    published, there = folder.Staging.publish, list[str]()

    def publish(staged: folder.Staging) -> folder.SessionFolder:
        there.extend(path.name for path in (staged.staging / folder.ARTIFACTS).iterdir())
        return published(staged)

    monkeypatch.setattr(folder.Staging, "publish", publish)
    made = creation.create({"task": "take_key", "world": "tests.worlds.corridor:make_world"}, session_id="here")
    with Reader(folder.SessionFolder(Path(made["folder"]))) as reader:
        assert there == [reader.history_at().session["versions"]["skills"]] and made["id"] == "here"


def test_two_processes_do_not_run_the_same_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"world": "tests.worlds.corridor:make_world", "llm": {"kind": "rules"}, "budget": {"env_steps": 500}}
    asked = {"kind": "critic", "name": "mine", "tasks": ["take_key"], "seeds": [0], "settings": settings, "jobs": 1}
    place = tmp_path / "experiments" / "mine"
    place.mkdir(parents=True)
    told = io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(asked)))
    with Lease.acquire(place, RUNNER), contextlib.redirect_stdout(told):
        assert main() == 4
    assert "experiment mine is being run by another process" in json.loads(told.getvalue())["error"]
    assert not folder.sessions()


def test_what_another_process_made_while_this_one_waited_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"world": "tests.worlds.corridor:make_world", "llm": {"kind": "rules"}, "budget": {"env_steps": 500}}
    asked = {"kind": "critic", "name": "mine", "tasks": ["take_key"], "seeds": [0], "settings": settings, "jobs": 1}
    declared(asked).save()
    acquire = Lease.acquire

    def after_the_other(*arguments: Any) -> Lease:
        theirs = declared(asked)
        theirs.made(theirs.sessions[0], "261123-000000-other")
        return acquire(*arguments)

    monkeypatch.setattr(Lease, "acquire", after_the_other)
    monkeypatch.setattr(Runner, "run", lambda runner: [])
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(asked)))
    with contextlib.redirect_stdout(io.StringIO()):
        assert main() == 0
    assert declared(asked).sessions[0].id == "261123-000000-other"


def test_a_file_in_the_place_of_a_folder_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"world": "tests.worlds.corridor:make_world", "llm": {"kind": "rules"}, "budget": {"env_steps": 500}}
    asked = {"kind": "critic", "name": "mine", "tasks": ["take_key"], "seeds": [0], "settings": settings, "jobs": 1}
    (tmp_path / "experiments").write_text("")
    told = io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(asked)))
    with contextlib.redirect_stdout(told):
        assert main() == 2
    assert str(tmp_path / "experiments") in json.loads(told.getvalue())["error"]


def test_a_folder_that_takes_no_bundles_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    ask = lambda name, arguments: BILL if name == "experiment_bill" else child(name, arguments)  # noqa: E731
    monkeypatch.setattr(experiment.children, "ask", ask)
    monkeypatch.setattr(experiment, "_follow", lambda request, json: pytest.fail("it was started"))
    assert cli.run(["experiment", "critic", "--yes", "--evidence", str(tmp_path / "file" / "kept")]) == 5
    assert "cannot be written: Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        ("--iterations", "iterations"),
        ("--attempts", "inner"),
        ("--test-episodes", "test_episodes"),
        ("--dev-episodes", "dev_first"),
    ],
)
def test_a_number_that_no_session_takes_is_refused_by_the_name_of_its_option(
    option: str, setting: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (most,) = (bound.le for bound in LoopSettings.model_fields[setting].metadata if hasattr(bound, "le"))
    monkeypatch.setattr(experiment.children, "ask", lambda name, arguments: BILL)
    assert cli.run(["experiment", "arms", "wake_up", option, str(most), "--dry-run"]) == 0
    assert cli.run(["experiment", "arms", "wake_up", option, str(most + 1), "--dry-run"]) == 2
    assert option in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_command_alone_stops_its_sessions(tmp_path: Path, number: int) -> None:
    """As `kill PID` sends it: a terminal's Ctrl-C goes to every process of the group. Where the tests themselves run in
    the background of a shell they ignore SIGINT, and so would the command."""
    words = "experiment arms take_key --arm rl --world tests.worlds.corridor:make_world --seeds 2 --jobs 1"
    command = children.command(children.CLI, *words.split(), "--env-steps", "50000000", "--yes", "--json")
    folders = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=folders, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(folders)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:  # fmt: skip
        assert running.stdout is not None and running.stderr is not None
        told = (json.loads(line) for line in running.stdout)
        session = next(record["session"] for record in told if record["kind"] == "started")
        place = folder.root() / session
        until(lambda: Lease.held(place))
        running.send_signal(number)
        try:
            running.wait(PATIENCE)
        finally:
            running.kill()
        last = list(told)[-1:]
        said = "" if number == signal.SIGKILL else running.stderr.read()
    if number == signal.SIGKILL:
        assert running.returncode == -number
    else:
        assert running.returncode == 130 and last == [{"error": "interrupted", "exit_code": 130}]
        assert "stopping its sessions; the same command goes on with them\n" in said
    until(lambda: not Lease.held(place))
    with Lease.acquire(tmp_path / "experiments" / "arms-take_key", RUNNER):
        assert len(list((tmp_path / "sessions").iterdir())) == 1


def test_the_death_of_the_process_that_runs_it_is_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = 'import os; print(\'{"kind": "started", "se\', end=\'\', flush=True); os.kill(os.getpid(), 9)'
    monkeypatch.setattr(experiment.children, "ask", lambda name, arguments: BILL)
    monkeypatch.setattr(experiment.children, "command", lambda module: [sys.executable, "-c", dies])
    assert cli.run(["experiment", "critic", "--yes"]) == 1
    assert "was killed by signal 9; the same command goes on from here" in capsys.readouterr().err


def test_a_process_that_dies_before_it_was_told_what_to_run_is_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe that nobody reads was taken for an output that nobody reads, as of `| head`: exit 0, and no word."""
    started = subprocess.Popen

    def dead(*words: Any, **how: Any) -> Any:
        child = started(*words, **how)
        child.wait()
        return child

    monkeypatch.setattr(experiment.children, "ask", lambda name, arguments: BILL)
    monkeypatch.setattr(experiment.children, "command", lambda module: [sys.executable, "-c", "raise SystemExit(3)"])
    monkeypatch.setattr(experiment.subprocess, "Popen", dead)
    assert cli.run(["experiment", "critic", "--yes"]) == 1
    assert "ended with 3; the same command goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize(("ends", "code"), [("sys.exit(130)", 130), ("sys.exit(1)", 6)])
def test_what_is_over_when_it_is_stopped_is_kept_as_evidence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: str, code: int
) -> None:
    asked: list[str] = []

    def ask(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        asked.append(name)
        return {"written": ["a.rlgpt"], "missing": 3} if name == "experiment_bundles" else BILL

    done = {"kind": "done", "complete": False, "left": 3, "failed": []}
    child = f"import sys; print({json.dumps(json.dumps(done))}, flush=True); {ends}"
    monkeypatch.setattr(experiment.children, "ask", ask)
    monkeypatch.setattr(experiment.children, "command", lambda module: [sys.executable, "-c", child])
    assert cli.run(["experiment", "critic", "--yes", "--evidence", str(tmp_path)]) == code
    assert asked[-1] == "experiment_bundles"
    said = capsys.readouterr().out
    assert f"1 bundle in {tmp_path}, without 3 sessions not done" in said and "compare them" not in said


def test_the_evidence_of_another_experiment_is_not_replaced(tmp_path: Path) -> None:
    asked = request(tmp_path, seeds=[0, 1])
    declared(asked).save()
    write_bundles(asked)
    assert need_folder(asked) == asked["to"]
    for other in ({"name": "theirs"}, {"seeds": [0]}, {"settings": asked["settings"] | {"budget": {"env_steps": 600}}}):
        (folder.root().parent / "experiments" / "mine" / "experiment.json").unlink(missing_ok=True)
        with pytest.raises(CannotCreate, match="holds other sessions, of experiment mine: choose another folder"):
            need_folder(asked | other)
    assert need_folder(asked | {"seeds": [0, 1, 2]}) == asked["to"]


def test_a_task_called_like_a_path_and_a_session_too_large_leave_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = request(tmp_path, seeds=[0])
    manifest = declared(asked)
    manifest.sessions = [replace(planned, task="../reach") for planned in manifest.sessions]
    for number, planned in enumerate(manifest.sessions):
        manifest.made(planned, f"261121-01000{number}-aa")
    written: list[Path] = []

    def export(place: object, target: Path, evidence: bool) -> Path:
        if not written:
            written.append(Path("nothing"))
            raise StoreError("it takes too much")
        written.append(target)
        return target

    monkeypatch.setattr(requests, "declared", lambda asked: manifest)
    monkeypatch.setattr(requests, "known", lambda planned: SimpleNamespace(over=True))
    monkeypatch.setattr(requests, "require_same_settings", lambda every: None)
    monkeypatch.setattr(requests, "folder_of", lambda planned: planned.id)
    monkeypatch.setattr(requests, "export_bundle", export)
    with pytest.raises(StoreError, match="it takes too much"):
        write_bundles(asked)
    assert [path.parent for path in written[1:]] == [tmp_path / "kept"] and "..%2Freach" in written[1].name
    assert (tmp_path / "kept" / "experiment.json").is_file()


def test_a_session_of_another_arm_is_no_evidence(tmp_path: Path) -> None:
    asked = request(tmp_path, seeds=[0])
    manifest = declared(asked)
    first, second = manifest.sessions
    made = str(creation.create(second.settings)["id"])
    manifest.made(first, made)
    with pytest.raises(Undeclared, match=f"session {made} of this experiment was made with another "):
        write_bundles(asked)
    manifest.made(second, made)
    with pytest.raises(NoExperiment, match=f"session {made} is in it twice"):
        declared(asked)
