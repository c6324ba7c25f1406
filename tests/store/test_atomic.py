"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rlgpt.store import atomic


def test_on_a_full_disk_the_old_file_stays_and_the_error_names_it(tmp_path: Path) -> None:
    target = tmp_path / "kept.json"
    atomic.write_bytes(target, b"old")
    with pytest.raises(OSError) as raised, atomic.new_file(target) as partial:
        partial.unlink()
        partial.symlink_to("/dev/full")
        partial.write_bytes(b"new")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(target))
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]


def test_an_error_that_names_its_file_is_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        atomic.write_bytes(tmp_path / "missing" / "kept.json", b"new")
    assert "missing" in str(raised.value.filename)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_must_be_new_replaces_none_that_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refused(*_args: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not links:  # as on FAT
        monkeypatch.setattr(os, "link", refused)
    target = tmp_path / "kept.json"
    with atomic.new_file(target, must_be_new=True) as partial:
        partial.write_bytes(b"first")
    with pytest.raises(FileExistsError), atomic.new_file(target, must_be_new=True) as partial:
        partial.write_bytes(b"second")
    assert target.read_bytes() == b"first" and list(tmp_path.iterdir()) == [target]
    assert target.stat().st_nlink == 1
