from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.console import cli
from rlgpt.console.commands.export_import import FORMATS
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.files import new_file
from rlgpt.store import export
from rlgpt.store import skills as library
from rlgpt.store.folder import SessionFolder

from .conftest import Answer

Cli = Callable[..., Answer]


def test_the_command_offers_exactly_the_formats_that_the_store_writes() -> None:
    assert tuple(export.FORMATS) == FORMATS


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_written_where_one_asks(
    rlgpt: Cli, finished: SessionFolder, format: str, tmp_path: Path
) -> None:
    written = rlgpt("export", finished.id, "--format", format, "-o", tmp_path / "there", "--json").document
    assert Path(written["path"]) == tmp_path / "there" and Path(written["path"]).exists()


@pytest.mark.parametrize(("format", "name"), [("bundle", "one.rlgpt"), ("jsonl", "one.jsonl"), ("jsonl", "lines.txt")])
def test_what_was_exported_comes_back_as_the_same_session(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, name: str
) -> None:
    shown = rlgpt("show", finished.id, "--json").document
    written = rlgpt("export", finished.id, "--format", format, "-o", tmp_path / name, "--json").document
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "elsewhere"))
    assert rlgpt("import", written["path"], "--json").document["id"] == finished.id
    assert rlgpt("show", finished.id, "--json").document == shown


def test_a_bundle_is_looked_at_without_becoming_a_session(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = rlgpt("show", finished.id, "--json").document
    rlgpt("export", finished.id, "-o", tmp_path / "one.rlgpt")
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "elsewhere"))
    assert rlgpt("show", tmp_path / "one.rlgpt", "--json").document == shown
    assert rlgpt("sessions", "--json").document == {"sessions": []}


def test_a_file_that_is_no_export_is_refused_and_leaves_nothing(rlgpt: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.rlgpt").write_bytes(b"PK\x03\x04 not really")
    for words, code in (("bad.rlgpt", 2), ("missing.rlgpt", 2)):
        answer = rlgpt("import", tmp_path / words)
        assert answer.code == code and answer.err.startswith("rlgpt: ")
    assert rlgpt("sessions", "--json").document == {"sessions": []}


def test_an_unknown_format_is_refused(rlgpt: Cli, finished: SessionFolder) -> None:
    assert rlgpt("export", finished.id, "--format", "pickle").code == 2


@pytest.mark.parametrize(
    "words",
    [("export", "ID"), ("export", "ID", "--format", "csv"), ("report", "ID"), ("store", "backup", "there")],
    ids=" ".join,
)
def test_what_is_already_there_is_refused_and_stays(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = [finished.id if word == "ID" else word for word in words]
    assert rlgpt(*line).code == 0
    before = {
        path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.suffix in (".rlgpt", ".html", ".csv")
    }
    answer = rlgpt(*line)
    assert answer.code == 4 and answer.err.endswith(
        "is already there.\n" if words[0] == "report" else "already there\n"
    )
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())


def test_a_session_that_is_here_is_not_imported_again(rlgpt: Cli, finished: SessionFolder, tmp_path: Path) -> None:
    rlgpt("export", finished.id, "-o", tmp_path / "one.rlgpt")
    answer = rlgpt("import", tmp_path / "one.rlgpt")
    assert answer.code == 4 and answer.err == f"rlgpt: session {finished.id} is already here\n"


def test_what_refuses_one_bundle_keeps_no_other_from_being_imported(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, again, none = (tmp_path / f"{name}.rlgpt" for name in ("good", "again", "none"))
    rlgpt("export", finished.id, "-o", good)
    again.write_bytes(good.read_bytes())
    none.write_text("no bundle")
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "elsewhere"))
    answer = rlgpt("import", none, good, again, "--json")
    bad, imported, here = answer.document["sessions"]
    assert answer.code == 2 and imported["id"] == finished.id and imported["error"] is None
    assert bad["id"] is None and bad["error"] and here["error"] == f"session {finished.id} is already here"
    told = answer.err.splitlines()
    assert len(told) == 2 and str(none) in told[0] and str(again) in told[1]
    assert rlgpt("import", good, tmp_path / "nowhere").err == f"rlgpt: there is no file {tmp_path / 'nowhere'}.\n"


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (("export",), b"PK"),
        (("export", "--format", "jsonl"), b'{"format":"rlgpt-jsonl-1"'),
        (("report",), b"<!doctype html>"),
    ],
    ids=["bundle", "jsonl", "report"],
)
def test_a_dash_is_standard_output(
    finished: SessionFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    words: tuple[str, ...],
    starts: bytes,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run([words[0], finished.id, *words[1:], "-o", "-"]) == 0
    written = capfdbinary.readouterr().out
    assert written.startswith(starts) and not (tmp_path / "-").exists()
    if words == ("export",):
        (tmp_path / "piped.rlgpt").write_bytes(written)
        assert cli.run(["show", str(tmp_path / "piped.rlgpt"), "--json"]) == 0
        assert json.loads(capfdbinary.readouterr().out)["id"] == finished.id


def test_a_dash_is_refused_where_a_file_would_do_harm(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert rlgpt("export", finished.id, "--format", "csv", "-o", "-").err == (
        "rlgpt: csv is a folder of files: name it with --output.\n"
    )
    both = rlgpt("report", finished.id, "-o", "-", "--json")
    assert both.code == 2 and "say one of them" in both.err
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for words in (("export", "--format", "jsonl"), ("report",)):
        answer = rlgpt(words[0], finished.id, *words[1:], "-o", "-")
        assert answer.code == 2 and "standard output is a terminal" in answer.err and not answer.out
    assert not list(tmp_path.glob("-"))


@pytest.mark.parametrize("command", ["funnel", "episodes", "why", "options", "plan", "calls", "report"])
def test_a_row_that_a_session_does_not_have_is_said(rlgpt: Cli, finished: SessionFolder, command: str) -> None:
    answer = rlgpt(command, finished.id, "--at", "99999")
    assert answer.code == 3 and answer.err.endswith("rows and no row 99999.\n")


def test_an_export_to_a_full_disk_leaves_nothing(rlgpt: Cli, finished: SessionFolder, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(disk)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"This machine does not let the tests mount a small disk: {error}")
    try:
        answer = rlgpt("export", finished.id, "-o", disk / "one.rlgpt")
        assert (answer.code, "is full" in answer.err) == (5, True), answer.err
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_an_export_that_another_one_was_faster_than_is_refused(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slower(place: object, target: Path) -> Path:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", str(target))

    monkeypatch.setitem(export.FORMATS, "csv", export.FORMATS["csv"]._replace(write=slower))
    answer = rlgpt("export", finished.id, "--format", "csv", "-o", tmp_path / "two")
    assert (answer.code, answer.err) == (4, f"rlgpt: {tmp_path / 'two'} is already there\n")


def test_skills_are_written_to_a_new_file_and_moved_once(rlgpt: Cli, tmp_path: Path) -> None:
    skill = library.Skill(
        name="dig", world="crafter", source="def dig(view): ...", done_when="True", description="Digs.", task="t",
        successes=3, episodes=5, session_id="s", kept_at=0.0,
    )  # fmt: skip
    library.keep(skill)
    file = tmp_path / "new" / "skills.json"
    assert rlgpt("skills", "export", file).code == 0
    before = file.read_bytes()
    assert rlgpt("skills", "export", file).code == 4
    piped = subprocess.run(
        [sys.executable, "-P", "-m", "rlgpt.console.cli", "skills", "export", "-"], capture_output=True, check=True
    )
    assert piped.stdout == file.read_bytes()
    assert rlgpt("skills", "export", tmp_path / "none.json", "--world", "nope").code == 3
    assert file.read_bytes() == before and not (tmp_path / "none.json").exists()
    other = rlgpt("skills", "export", tmp_path / "none.json", "--skill", "dig", "--world", "kitchen")
    assert other.code == 2 and "is of world 'crafter'" in other.err
    assert rlgpt("skills", "retire", "dig").code == 0
    assert [s["name"] for s in rlgpt("skills", "list", "digs", "--retired", "--json").document["skills"]] == ["dig"]
    assert rlgpt("skills", "list", "fly", "--retired", "--json").document["skills"] == []
    again = rlgpt("skills", "retire", "dig")
    assert again.code == 4 and "is retired already" in again.err
    assert rlgpt("skills", "restore", "dig").code == 0
    assert "is in use already" in rlgpt("skills", "restore", "dig").err


def test_an_import_says_which_skills_were_there_already(
    rlgpt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def skill(name: str) -> library.Skill:
        source = "def act(api):\n    yield api.noop()\n"
        return library.Skill(name, "crafter", "x", "Do.", source, "True", 8, 7, "s", 1.0)

    dig, hide = [library.keep(skill(name)) for name in ("dig", "hide")]
    rlgpt("skills", "export", tmp_path / "both.json")
    assert rlgpt("skills", "import", tmp_path / "both.json").out == "imported nothing\nalready there: dig, hide\n"
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "elsewhere"))
    library.keep(skill("hide"))
    answer = rlgpt("skills", "import", tmp_path / "both.json", "--json")
    assert answer.document == {"imported": [dig], "already_there": [hide]}
    assert rlgpt("skills", "import", tmp_path / "both.json").out == "imported nothing\nalready there: dig, hide\n"


def test_a_file_that_holds_no_skills_is_named(rlgpt: Cli, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("root:x:0:0")
    answer = rlgpt("skills", "import", wrong)
    assert (answer.code, answer.err) == (2, f"rlgpt: {wrong}: this is no file of skills (it is not JSON)\n")


def test_a_home_that_cannot_keep_skills_is_named_not_the_file(
    rlgpt: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.keep(library.Skill("dig", "crafter", "x", "Do.", "def dig(view): ...", "True", 8, 7, "s", 1.0))
    rlgpt("skills", "export", tmp_path / "one.json")
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "skills").write_text("a file where a folder should be")
    answer = rlgpt("skills", "import", tmp_path / "one.json")
    assert answer.code == 5 and answer.err.startswith(f"rlgpt: {tmp_path / 'elsewhere'} cannot keep skills: ")


def test_a_bundle_for_which_there_is_no_room_is_no_mistake_of_its_file(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rlgpt("export", finished.id, "-o", tmp_path / "x.rlgpt")
    monkeypatch.setattr("rlgpt.store.bundle.free_bytes", lambda path: 0)
    answer = rlgpt("import", tmp_path / "x.rlgpt")
    assert answer.code == 5 and "unpacks to 1 MB, and 0 MB are free on the disk of" in answer.err


def test_what_is_no_regular_file_is_not_said_to_be_missing(rlgpt: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file in ("/dev/zero", "/dev/null", tmp_path / "pipe", tmp_path):
        answer = rlgpt("import", file)
        assert (answer.code, answer.err) == (2, f"rlgpt: {file} is no regular file.\n")
    assert rlgpt("import", "nothing").err == "rlgpt: there is no file nothing.\n"


def test_a_negative_number_is_not_called_an_option(rlgpt: Cli, finished: SessionFolder) -> None:
    answer = rlgpt("budget", finished.id, "cost", "-1")
    assert answer.code == 2 and answer.err.startswith("rlgpt: -1: no number here may be negative. ")


def test_a_sound_session_is_not_repaired(rlgpt: Cli, finished: SessionFolder) -> None:
    answer = rlgpt("store", "repair", finished.id)
    assert (answer.code, answer.err) == (4, f"rlgpt: session {finished.id} is sound: there is nothing to repair.\n")


def test_a_rejection_without_a_reason_is_refused(rlgpt: Cli, finished: SessionFolder) -> None:
    answer = rlgpt("reject", finished.id, "--revision", "1", "")
    assert (answer.code, "give a reason" in answer.err) == (2, True)


@pytest.mark.parametrize("words", [("export", "ID", "-o", "link"), ("report", "ID", "-o", "link")])
def test_a_link_to_a_file_that_is_not_there_yet_stays_and_the_file_is_written(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to("deep/written")
    assert rlgpt(*[finished.id if word == "ID" else word for word in words]).code == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "deep" / "written").stat().st_size


def test_a_file_that_came_while_another_was_written_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "curves.svg"
    with pytest.raises(Failure, match="is already there") as refused, new_file(target) as partial:
        partial.write_text("second")
        target.write_text("first")
    assert refused.value.code == Exit.REFUSED and target.read_text() == "first"
    assert [path for path in tmp_path.iterdir() if path.is_file()] == [target]


SLOW = """
import time
from rlgpt.console import cli
from rlgpt.store import bundle
def pack(target, *_):
    target.touch()
    print("packing", flush=True)
    time.sleep(600)
bundle._pack = pack
cli.main()
"""
"""A command that has copied a session, and does not get on with packing it."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_export_that_is_told_to_end_leaves_nothing(finished: SessionFolder, tmp_path: Path, number: int) -> None:
    folder = tmp_path / "there"
    words = [sys.executable, "-P", "-c", SLOW, "export", finished.id, "-o", str(folder / "x.rlgpt")]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)
    ) as export_:
        assert export_.stdout is not None and export_.stdout.readline() == b"packing\n"
        assert list(folder.iterdir())
        export_.send_signal(number)
    assert export_.returncode == -number, "whoever started it sees that it was told to end"
    assert list(folder.iterdir()) == []


def test_what_was_told_to_ignore_a_hang_up_goes_on_ignoring_it(finished: SessionFolder, tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-c", SLOW, "export", finished.id, "-o", str(tmp_path / "x.rlgpt")]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ) as export_:
        assert export_.stdout is not None and export_.stdout.readline() == b"packing\n"
        export_.send_signal(signal.SIGHUP)
        export_.send_signal(signal.SIGTERM)
    assert export_.returncode == -signal.SIGTERM
