"""`rlgpt minedojo install`: what is no Python is said in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlgpt.training.worlds.minedojo import install


@pytest.mark.parametrize("kind", ["missing", "folder", "no python"])
def test_an_interpreter_that_is_none_is_told_in_one_sentence(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    if kind == "folder":
        python.mkdir()
    elif kind == "no python":
        python.write_text("#!/bin/sh\necho hi\n")
        python.chmod(0o755)
    assert install.main(["--python", str(python), "--json"]) == install.UNAVAILABLE
    line, error = map(json.loads, capsys.readouterr().out.splitlines())
    assert line["ok"] is False and error == {"error": line["sentence"], "exit_code": 5}
