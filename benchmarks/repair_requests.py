"""How often a request to repair code contains the failure it is about: as recorded, and when played again today.

    python -P benchmarks/repair_requests.py evidence/arms-iron/*-code-[0-4].rlgpt evidence/llm-diamond/*.rlgpt

Each bundle's session is played again with its own settings and seed (a language model's answers are replayed), so
that its code fails in the same episodes. Counted are requests for a further version of code that was tried or
refused. The failure is in one if it shows a failed trial, a lost episode of the plan, or the error or refusal.
Bundles may lack the requests themselves, so of a recorded one the trial row is looked at: its failed trial was all
that a request could show.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlgpt.agents.rules.question import read
from rlgpt.store.bundle import import_bundle, viewed
from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from rlgpt.store.settings import stored

Row = Mapping[str, Any]


def repairs(reader: Reader, holds: Callable[[Row, Row], bool]) -> tuple[int, int]:
    """(requests, those of which `holds(call, last trial)` is true)."""
    last: dict[str, Row] = {}
    asked = held = 0
    for table, row in reader.changes_since(0, None):
        if table == "trial":
            last[row["sub_action"]] = row
        elif table == "llm_call" and row["state"] == "answered" and row["step"].startswith("write/"):
            trial = last.get(row["step"].split("/")[2])
            if trial is not None:
                asked, held = asked + 1, held + holds(row, trial)
    return asked, held


def as_recorded(bundle: Path) -> tuple[int, int]:
    def holds(call: Row, trial: Row) -> bool:
        return bool(trial["evidence"].get("bad") or trial["error"])

    with viewed(bundle) as folder, Reader(folder) as reader:
        return repairs(reader, holds)


def played_again(bundle: Path) -> tuple[int, int]:
    with viewed(bundle) as folder, Reader(folder) as reader:
        settings = stored(reader.history_at().session["settings"]).model_dump(mode="json")
    if settings["llm"]["kind"] != "rules":
        settings["llm"] = settings["llm"] | {"kind": f"replay:{import_bundle(bundle).id}"}
    settings["loop"] = settings["loop"] | {"test_episodes": 1}
    settings["method"] = settings["method"] | {"controls": []}
    asked = json.dumps({"ask": "create", "settings": settings}).encode()
    answer = subprocess.run([sys.executable, "-P", "-m", "rlgpt.training.service"], input=asked, capture_output=True)
    made = SessionFolder(Path(json.loads(answer.stdout)["ok"]["folder"]))
    subprocess.run([sys.executable, "-P", "-m", "rlgpt.training.supervisor", str(made.path)], check=False)

    with Reader(made) as reader:

        def holds(call: Row, trial: Row) -> bool:
            question = read(json.loads(reader.text(call["request_hash"])))
            last = question.get("last") or {}
            shown = "lost_trial" in question.texts or "lost_in_plan" in question.texts
            return shown or bool(last.get("error") or last.get("refused"))

        return repairs(reader, holds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+", type=Path)
    chosen = parser.parse_args()
    total = [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as home:
        os.environ["RLGPT_HOME"] = home
        for bundle in chosen.bundles:
            counts = (*as_recorded(bundle), *played_again(bundle))
            total = [before + now for before, now in zip(total, counts, strict=True)]
            print(f"{bundle.stem:28} recorded {counts[1]:3} of {counts[0]:3}   today {counts[3]:3} of {counts[2]:3}")
    print(f"{'all':28} recorded {total[1]:3} of {total[0]:3}   today {total[3]:3} of {total[2]:3}")


if __name__ == "__main__":
    main()
