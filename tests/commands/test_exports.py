from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlgpt.console.commands.export_import import FORMATS
from rlgpt.store import export
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


@pytest.mark.parametrize(("format", "name"), [("bundle", "one.rlgpt"), ("jsonl", "one.jsonl")])
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
    for words, code in (("bad.rlgpt", 2), ("missing.rlgpt", 3)):
        answer = rlgpt("import", tmp_path / words)
        assert answer.code == code and answer.err.startswith("rlgpt: ")
    assert rlgpt("sessions", "--json").document == {"sessions": []}


def test_an_unknown_format_is_refused(rlgpt: Cli, finished: SessionFolder) -> None:
    assert rlgpt("export", finished.id, "--format", "pickle").code == 2
