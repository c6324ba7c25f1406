"""The command of the README, twice: it ends by itself, well, and the same way."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from tests.end_to_end.sameness import every_row
from tests.end_to_end.typed import rlgpt

MAIN = ("run", "make_stone_pickaxe", "--llm", "rules", "--headless", "--seed", "1")
LONGEST = 3600.0
"""Seconds after which the test gives up."""


@pytest.mark.slow
@pytest.mark.timeout(2 * LONGEST)
def test_the_main_job_ends_by_itself_with_a_tested_policy_and_again_with_the_same_rows(tmp_path: Path) -> None:
    folders = []
    for name in ("first", "second"):  # a store each: a kept skill of the first would be offered to the second
        said = rlgpt(tmp_path / name, *MAIN, timeout=LONGEST)
        assert said.code == 0, said.out + said.err
        (folder,) = (tmp_path / name / "sessions").iterdir()
        folders.append(SessionFolder(folder))
    with Reader(folders[0]) as reader:
        tested = reader.rows("evaluation", {"split": "test", "variant": "full"})
    episodes = sum(row["episodes"] for row in tested)
    assert episodes >= 100 and sum(row["successes"] for row in tested) / episodes >= 0.85
    left, right = (every_row(folder) for folder in folders)
    for table in left:
        assert left[table] == right[table], f"{table} differs"
