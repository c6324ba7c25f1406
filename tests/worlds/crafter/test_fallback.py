"""Without numba the same rules run as plain Python; every branch of them is reached against stock."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worlds.crafter.uncompiled import played

ROOT = Path(__file__).parents[3]
RULES = (
    "ground", "player", "creatures", "population", "rules", "random_stream", "noise", "terrain", "senses",
)  # fmt: skip


def run(*command):
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", *command],
        cwd=ROOT,
        env=os.environ | {"RLGPT_NUMBA": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_uncompiled_rules_are_stock_and_feel_the_same():
    assert run("-m", "tests.worlds.crafter.uncompiled", "3", "8") == played(3, 8)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_nine_in_ten_and_more_of_the_rule_branches_are_compared(tmp_path):
    (tmp_path / "rc").write_text(
        f"[run]\nbranch = True\ndata_file = {tmp_path}/data\ninclude = "
        + ",".join(f"*/crafter/{name}.py" for name in RULES)
    )
    rc = f"--rcfile={tmp_path}/rc"
    run("-m", "coverage", "run", rc, "-m", "tests.worlds.crafter.uncompiled", "60", "14")
    print(run("-m", "coverage", "report", rc))
    run("-m", "coverage", "json", rc, "-o", str(tmp_path / "report.json"))
    totals = json.loads((tmp_path / "report.json").read_text())["totals"]
    assert totals["covered_branches"] / totals["num_branches"] >= 0.95
