"""Sessions of released schemas still open, replay and continue."""

from __future__ import annotations

import html
import importlib.util
import json
import random
from pathlib import Path

import pytest

from rlgpt.console.commands.insight import moment_of
from rlgpt.console.report.document import page
from rlgpt.store import events
from rlgpt.store.bundle import import_bundle, viewed
from rlgpt.store.history import fold_all
from rlgpt.store.reader import Reader
from rlgpt.store.revision import REVISION
from rlgpt.store.writer import Writer

HERE = Path(__file__).parent
KEPT = sorted(path.stem for path in HERE.glob("*.rlgpt"))
_spec = importlib.util.spec_from_file_location("keep", HERE / "keep.py")
assert _spec and _spec.loader
keep = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(keep)


def test_a_session_of_every_released_schema_is_kept() -> None:
    schemas = {name.partition("-")[0] for name in KEPT}
    assert schemas == {f"{number:04}" for number in range(1, int(REVISION) + 1)}


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_session_folds_to_what_it_folded_to_then(name: str) -> None:
    with viewed(HERE / f"{name}.rlgpt") as folder, Reader(folder) as reader:
        assert json.loads(json.dumps(keep.told(reader.history_at()))) == json.loads((HERE / f"{name}.json").read_text())


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_session_replays_at_any_cursor(name: str) -> None:
    rng = random.Random(name)
    with viewed(HERE / f"{name}.rlgpt") as folder, Reader(folder) as reader:
        rows = reader.changes_since(0, None)
        last = reader.last_seq()
        for cursor in [1, last, *(rng.randint(1, last) for _ in range(20))]:
            assert reader.history_at(cursor) == fold_all(row for row in rows if row[1]["seq"] <= cursor)
        for row in reader.rows("code_version"):
            assert reader.text(row["source_hash"]) or not row["admitted"]


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_session_has_a_report(name: str) -> None:
    with moment_of(str(HERE / f"{name}.rlgpt"), None) as moment:
        told = page(moment)
        assert "<svg" in told or not moment.history.runs
        assert moment.history.session["task_info"]["prompt"] in html.unescape(told)


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_session_can_be_imported_and_continued(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    made = import_bundle(HERE / f"{name}.rlgpt")
    with Reader(made) as reader:
        before = reader.history_at()
    with Writer(made) as writer:
        assert writer.history == before
        assert writer.event(events.Phase(name="Plan")) == before.seq + 1
