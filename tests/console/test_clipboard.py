"""Where copied text can be had, in and out of tmux."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rlgpt.console.clipboard import FILE, copy


def test_outside_tmux_a_file_of_the_owner_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    said = copy("def rest():\n    äß", tmp_path)
    assert said == f"by OSC 52; also in {tmp_path / FILE}"
    assert (tmp_path / FILE).read_text() == "def rest():\n    äß"
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_where_tmux_does_not_answer_the_file_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", f"{tmp_path}/gone,1,0")
    assert FILE in copy("text", tmp_path) and (tmp_path / FILE).read_text() == "text"


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    (tmp_path / "file").write_text("")
    assert copy("text", tmp_path / "file").startswith("by OSC 52 only: ")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")
def test_inside_tmux_its_buffer_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmux = ["tmux", "-S", str(tmp_path / "socket")]
    kept = {name: value for name, value in os.environ.items() if name != "TMUX"}
    subprocess.run([*tmux, "-f", "/dev/null", "new-session", "-d"], env=kept, check=True)
    try:
        monkeypatch.setenv("TMUX", f"{tmp_path / 'socket'},1,0")
        assert "tmux's buffer" in copy("yield 'noop'", tmp_path)
        shown = subprocess.run([*tmux, "show-buffer"], env=kept, capture_output=True, text=True, check=True)
        assert shown.stdout == "yield 'noop'"
    finally:
        subprocess.run([*tmux, "kill-server"], env=kept, check=False)
