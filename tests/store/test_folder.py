"""Where sessions live, how they are found, and where they may not be."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.store import folder
from rlgpt.store.catalog import find
from rlgpt.store.creation import free_name
from rlgpt.store.errors import BadPlace, NoSession
from rlgpt.store.folder import SessionFolder, check_place, file_system, sessions, space
from rlgpt.store.reader import Reader

NewSession = Callable[..., SessionFolder]


def test_a_session_is_for_its_owner_alone(session: SessionFolder) -> None:
    assert session.path.stat().st_mode & 0o777 == 0o700
    assert session.artifacts.stat().st_mode & 0o777 == 0o700
    assert session.database.stat().st_mode & 0o777 == 0o600


def test_ids_are_short_readable_and_sort_by_time(new_session: NewSession) -> None:
    made = [new_session() for _ in range(3)]
    assert all(re.fullmatch(r"\d{6}-\d{6}-[a-z2-9]{5}", s.id) for s in made)
    assert [s.id[:13] for s in sessions()] == sorted(s.id[:13] for s in made)


def test_a_session_holds_its_settings_and_versions_in_its_first_row(new_session: NewSession) -> None:
    made = new_session(seed=7, name="mine")
    with Reader(made) as reader:
        session = reader.history_at().session
    assert session["seq"] == 1 and session["settings"]["seed"] == 7 and session["name"] == "mine"
    assert session["versions"] == {"rlgpt": "0.1.0"} and session["task_info"]["horizon"] == 500


def test_a_session_is_found_by_id_prefix_name_and_last(new_session: NewSession) -> None:
    one, two = new_session(name="first try"), new_session(task="collect_iron")
    assert find(one.id) == find("first try") == one
    assert find(two.name) == find("last") == two if two.id > one.id else one
    assert find(one.id[:-1] if one.id[:-1] != two.id[:-1] else one.id) == one
    for wanted in ("nothing", ""):
        with pytest.raises(NoSession, match=r"there is no session .*`rlgpt sessions` lists them"):
            find(wanted)
    with pytest.raises(NoSession, match="may mean 2 sessions"):
        find(one.id[:4])


def test_a_name_is_found_with_which_many_ids_begin(new_session: NewSession) -> None:
    one, two = new_session(), new_session()
    named = new_session(name=one.id[:2])
    assert find(one.id[:2]) == named
    with pytest.raises(NoSession, match="may mean 3 sessions"):
        find(two.id[:3])


def test_a_free_name_is_no_longer_than_a_name_may_be(new_session: NewSession) -> None:
    named = new_session(name="Q" * 100)
    assert free_name(named.name) == "Q" * 98 + "-2"


def test_names_say_task_and_seed_and_do_not_repeat(new_session: NewSession) -> None:
    names = [new_session(seed=3).name for _ in range(3)]
    assert names == ["make-stone-pickaxe-3", "make-stone-pickaxe-3-2", "make-stone-pickaxe-3-3"]


def test_a_session_that_fails_to_be_made_is_not_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, new_session: NewSession
) -> None:
    def broken(base: object) -> None:
        raise OSError("no power")

    monkeypatch.setattr("rlgpt.store.schema.create", broken)
    with pytest.raises(BadPlace, match=r"cannot make a session in .*: no power"):
        new_session()
    assert sessions() == [] and list((home / "sessions").iterdir()) == []


MOUNTS = [("/", "ext4"), ("/home", "nfs4"), ("/home/ann/local", "xfs"), ("/scratch", "lustre"), ("/mnt/c", "9p")]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ann/x", "nfs4"),
        ("/home/ann/local/x", "xfs"),
        ("/homes/x", "ext4"),
        ("/scratch", "lustre"),
        ("/", "ext4"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(path: str, kind: str) -> None:
    assert file_system(Path(path), lambda: MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "lustre", "fuse.sshfs", "9p", "beegfs"])
def test_a_network_file_system_is_refused_with_the_cure(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_mounts", lambda: [("/", kind)])
    with pytest.raises(BadPlace, match=rf"network file system \({kind}.*set RLGPT_HOME to a folder on a local disk"):
        check_place(tmp_path)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "apfs", "overlay", "tmpfs", "zfs", ""])
def test_a_local_file_system_is_accepted(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_mounts", lambda: [("/", kind)])
    check_place(tmp_path / "not" / "there" / "yet")


def test_the_real_mounts_name_the_file_system_of_this_test(tmp_path: Path) -> None:
    assert file_system(tmp_path) != ""


@pytest.mark.parametrize(("free", "law"), [(5e9, "ok"), (9e8, "no frames"), (1e8, "none")])
def test_frames_stop_before_sessions_do(free: float, law: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "free_bytes", lambda path: int(free))
    assert space(tmp_path) == law


def test_no_session_starts_on_a_full_disk(new_session: NewSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "free_bytes", lambda path: 50_000_000)
    with pytest.raises(BadPlace, match=r"only 50 MB are free at .*rlgpt store prune"):
        new_session()
    assert sessions() == []


def test_a_home_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "file"))
    with pytest.raises(BadPlace, match=r"cannot make a session in .*Not a directory"):
        folder.prepare()
