"""docs/evidence.md says what its bundles say: every table there is what `rlgpt compare` prints."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

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


def _test_episodes_won(pattern: str) -> int:
    """Of what acts in each of these bundles, all together."""
    won = 0
    for bundle in (ROOT / "evidence").glob(pattern):
        with ZipFile(bundle) as packed, closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(packed.read("session.db"))
            query = "SELECT sum(successes) FROM evaluation WHERE split = 'test' AND variant = 'full'"
            won += database.execute(query).fetchone()[0] or 0
    return won


@pytest.mark.parametrize(
    ("bundles", "won", "sentence"),
    [
        ("arms-stone-pickaxe/*-rl-?.rlgpt", 1, "RL alone makes one stone pickaxe in 1,000 test episodes"),
        ("arms-skeleton/*-rl-?.rlgpt", 3, "RL alone defeats a skeleton in 3 of 1,000 test episodes"),
        ("arms-iron/*-rl-?.rlgpt", 0, "RL alone mines no iron in 1,000 test episodes"),
        ("arms-eat-plant/*-rl-?.rlgpt", 0, "RL alone in none of 500"),
    ],
)
def test_what_is_told_of_rl_alone_is_what_it_won(bundles: str, won: int, sentence: str) -> None:
    """A share that is printed as 0.00 may be three episodes of 1,000, which is not none."""
    assert _test_episodes_won(bundles) == won
    assert sentence in PAGE
