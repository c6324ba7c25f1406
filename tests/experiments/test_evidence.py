"""docs/evidence.md says what its bundles say: every table there is what `rlgpt compare` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rlgpt.console import cli
from rlgpt.store.bundle import EVIDENCE_BYTES

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "evidence").glob("*/experiment.json"))
PAGE = (ROOT / "docs" / "evidence.md").read_text()
SHOWN = re.findall(r"^\$ rlgpt compare evidence/([\w.-]+)$", PAGE, re.MULTILINE)


def test_every_experiment_has_its_table() -> None:
    assert {folder.name for folder in FOLDERS} <= set(SHOWN)


@pytest.mark.parametrize("folder", [ROOT / "evidence" / name for name in SHOWN], ids=lambda folder: folder.name)
def test_a_table_is_what_its_bundles_say(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    assert cli.run(["compare", str(folder)]) == 0
    assert f"$ rlgpt compare evidence/{folder.name}\n{capsys.readouterr().out}" in PAGE


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_bundles_are_small_and_all_declared_sessions_are_there(folder: Path) -> None:
    bundles = list(folder.glob("*.rlgpt"))
    declared = json.loads((folder / "experiment.json").read_text())["sessions"]
    assert len(bundles) == len(declared)
    assert all(bundle.stat().st_size <= EVIDENCE_BYTES for bundle in bundles)
