"""Keep a finished session for good: `python tests/sessions/keep.py ID NAME` writes NAME.rlgpt and NAME.json here.

The bundle has no checkpoints and only the first frames, so that it stays small; NAME.json is what it folds to.
One is kept for each released schema, and must replay to the same for ever.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from rlgpt.store.bundle import export_bundle
from rlgpt.store.catalog import find
from rlgpt.store.folder import ARTIFACTS, DATABASE, SessionFolder
from rlgpt.store.history import History
from rlgpt.store.reader import Reader
from rlgpt.store.snapshot import copy_database, unguarded

HERE = Path(__file__).parent
FRAMES = 60


def told(h: History) -> dict[str, Any]:
    """What a session came to, in plain values."""
    return {
        "seq": h.seq,
        "incarnation": h.incarnation,
        "status": h.status,
        "result": h.result,
        "reason": h.reason,
        "revision": h.revision,
        "plans": {str(n): [p.status, [[i.name, i.mode, i.pinned] for i in p.items]] for n, p in h.plans.items()},
        "iterations": [[i.number, i.verdict.success if i.verdict else None, len(i.evaluations)] for i in h.iterations],
        "attempts": [[a.sub_action, a.version, a.trial.outcome if a.trial else None] for a in h.attempts],
        "runs": {str(n): [r.state, r.updates, r.env_steps, len(r.hidden)] for n, r in h.runs.items()},
        "commands": [[c.kind, c.state] for c in h.commands.values()],
        "env_steps": h.spent.env_steps,
        "calls": h.spent.calls,
    }


def keep(session: SessionFolder, name: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        small = SessionFolder(Path(scratch) / session.id)
        (small.path / ARTIFACTS).mkdir(parents=True)
        copy_database(session.database, small.path / DATABASE)
        with contextlib.closing(sqlite3.connect(small.database, isolation_level=None)) as base:
            base.execute("BEGIN")
            with unguarded(base, ("frame",)):
                base.execute("DELETE FROM frame WHERE seq NOT IN (SELECT seq FROM frame LIMIT ?)", (FRAMES,))
            base.execute("COMMIT")
            base.execute("VACUUM")
        target = HERE / f"{name}.rlgpt"
        target.unlink(missing_ok=True)
        export_bundle(small, target)
        with Reader(small) as reader:
            body = json.dumps(told(reader.history_at()), indent=1)
        (HERE / f"{name}.json").write_text(body + "\n")


if __name__ == "__main__":
    keep(find(sys.argv[1]), sys.argv[2])
