"""Commands in surroundings that are not ours: a terminal that is not UTF-8, a home that names nobody."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlgpt.console import cli
from rlgpt.console.commands.failure import Exit
from rlgpt.store.bundle import import_bundle
from rlgpt.store.folder import sessions
from rlgpt.store.home import home
from rlgpt.store.lease import Lease
from rlgpt.store.writer import Writer

from .conftest import make

KEPT = Path(__file__).parent.parent / "sessions" / "0004-finished.rlgpt"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_a_letter_gets_a_question_mark(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    import_bundle(KEPT)
    words = [sys.executable, "-P", "-m", "rlgpt.console.cli", "why", "last"]
    done = subprocess.run(words, env=os.environ | {"PYTHONIOENCODING": encoding}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"? " in done.stdout and b"Traceback" not in done.stderr


def test_a_home_of_somebody_who_is_not_there_is_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLGPT_HOME", "~no-such-user/kept")
    assert home() == tmp_path / "~no-such-user" / "kept"


def test_a_home_named_from_the_folder_one_works_in_is_the_same_for_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLGPT_HOME", "kept")
    monkeypatch.setattr(cli, "run", lambda words: Exit.OK)
    with pytest.raises(SystemExit):
        cli.main()
    monkeypatch.chdir(make().path)  # as a supervisor and its worker are
    assert home() == tmp_path / "kept"


def test_a_relative_home_in_a_folder_that_was_removed_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setenv("RLGPT_HOME", "kept")
    monkeypatch.setattr(cli.sys, "argv", ["rlgpt", "sessions"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == Exit.UNAVAILABLE and "was removed" in capsys.readouterr().err


def test_a_number_that_no_row_has_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    folder = make("unfinished")
    number = "9" * 30
    assert cli.run(["fork", "last", "--no-start", "--at", number]) == Exit.NOT_FOUND
    assert f"and no row {number}" in capsys.readouterr().err
    with Lease.acquire(folder.path), Writer(folder):  # a command is for a session that has its worker
        assert cli.run(["approve", "last", "--revision", number]) == Exit.USAGE
    assert "larger than any that a session holds" in capsys.readouterr().err


@pytest.mark.parametrize("other", ["--detach", "--no-start"])
def test_a_fork_that_is_waited_for_has_a_worker(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    make("unfinished")
    assert cli.run(["fork", "last", "--headless", other]) == Exit.USAGE
    assert other in capsys.readouterr().err
    assert len(sessions()) == 1


LONG = "a" * 300


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["show", LONG], Exit.NOT_FOUND, "there is no session"),
        (["calls", LONG], Exit.NOT_FOUND, "there is no session"),
        (["replay", LONG], Exit.NOT_FOUND, "there is no session"),
        (["compare", LONG], Exit.USAGE, "too long for the name of a file"),
        (["import", LONG], Exit.USAGE, "too long for the name of a file"),
        (["report", "last", "-o", LONG], Exit.USAGE, "too long for the name of a file"),
        (["export", "last", "-o", LONG], Exit.USAGE, "too long for the name of a file"),
        (["store", "backup", LONG], Exit.USAGE, "too long for the name of a file"),
        (["store", "push", "last", "--to", LONG], Exit.USAGE, "too long for the name of a file"),
        (["store", "backup", ""], Exit.USAGE, "it has no name"),
        (["tag", "last", " "], Exit.USAGE, "a tag is empty"),
        (["skills", "show", "nope"], Exit.NOT_FOUND, "there is no skill 'nope'"),
    ],
)
def test_a_name_that_nothing_can_have_is_a_sentence(
    words: list[str], code: Exit, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Of a shell variable that is not set, or holds something else."""
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    import_bundle(KEPT)
    assert cli.run(words) == code
    assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("words", [["--help"], ["sessions"], ["show", "last", "--json"]])
def test_a_reader_that_has_read_enough_is_no_failure(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rlgpt sessions | head -1`: the pipe is closed while the command still writes."""
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    import_bundle(KEPT)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-P", "-m", "rlgpt.console.cli", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [[], ["show", "last"], ["edit", "last", "-", "--reward"]])
def test_closed_standard_streams_are_like_empty_ones(
    words: list[str], closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    import_bundle(KEPT)
    command = ["/bin/sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, "-P", "-m", "rlgpt.console.cli", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr + done.stdout
    assert done.returncode == {"": 2, "show": 0, "edit": 4}[words[0] if words else ""]


def test_a_file_for_a_closed_standard_output_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    import_bundle(KEPT)
    words = [sys.executable, "-P", "-m", "rlgpt.console.cli", "export", "last", "-o", "-"]
    command = ["/bin/sh", "-c", 'exec "$0" "$@" >&-', *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    sentence = b"rlgpt: standard output is closed: there is nowhere to write to.\n"
    assert (done.returncode, done.stderr) == (5, sentence)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (['method.rl={"fly":1}'], "method.rl.fly: Extra inputs are not permitted"),
        (["method.rl.hyperparameters.learning_rate=50"], "method.rl.hyperparameters.learning_rate"),
        (['method.rl.observation=["fly"]'], "method.rl: The world crafter has no feature 'fly'"),
        (["loop=5", "loop.iterations=2"], "loop was set to a value of its own before"),
    ],
)
def test_a_fork_takes_no_setting_that_a_new_session_would_not_take(
    changes: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    import_bundle(KEPT)
    said = [word for change in changes for word in ("--set", change)]
    assert cli.run(["fork", "last", "--no-start", *said]) == Exit.USAGE
    assert sentence in capsys.readouterr().err and len(sessions()) == 1


@pytest.mark.parametrize("words", [["sessions"], ["show", "last", "--json"], ["show", "nothing", "--json"]])
def test_a_full_disk_behind_standard_output_is_a_sentence(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    import_bundle(KEPT)
    command = [sys.executable, "-P", "-m", "rlgpt.console.cli", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("rlgpt: ")
    assert done.returncode == (Exit.NOT_FOUND if "nothing" in words else Exit.UNAVAILABLE)


@pytest.mark.parametrize("number", [errno.EFBIG, errno.EIO])
def test_what_the_machine_does_not_write_is_a_sentence(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ulimit -f` and `> FILE`; a terminal that was closed."""

    def refused(words: list[str]) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("rlgpt.console.commands.tree.run", refused)
    assert cli.run(["sessions"]) == Exit.UNAVAILABLE
    assert capsys.readouterr().err.endswith(f"{os.strerror(number)}\n")


def test_an_unexpected_error_is_told_in_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise AttributeError("a mistake of ours")

    monkeypatch.setattr("rlgpt.console.commands.tree.run", lambda words: broken())
    monkeypatch.setattr("rlgpt.store.database.opened", [])  # a damaged one of another test would be what is told
    with pytest.raises(AttributeError):
        cli.run(["sessions", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told == {"error": "AttributeError: a mistake of ours", "exit_code": 1}


def test_a_world_that_is_found_from_the_folder_where_one_stands_is_found_by_its_worker(tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("from tests.worlds.corridor import make_world\n")
    paths = os.pathsep.join([".", os.path.relpath(Path(__file__).parents[2], tmp_path)])
    words = ["run", "open_door", "--world", "here:make_world", "--llm", "rules", "--headless", "--iterations", "0"]
    words += ["--env-steps", "300"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rlgpt.console.cli", *words], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": paths, "RLGPT_HOME": str(tmp_path / "home")}, check=False,
    )  # fmt: skip
    assert "cannot be loaded" not in done.stdout and "plan 1" in done.stdout, done.stdout + done.stderr
