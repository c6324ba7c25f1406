"""What `show --json` says of an old session today, against what it said before decisions were rows (schema 0001).

`shown/NAME.json` was printed by the code of that day; the session is beside it, or one of the kept sessions of each
schema. The incumbent, the test result and the verdicts are the same;
every field that differs is listed in EXPLAINED with the reason.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlgpt.console.commands import record
from rlgpt.store.bundle import export_bundle, import_bundle, viewed
from rlgpt.store.event_payloads import DECISIONS
from rlgpt.store.reader import Reader
from rlgpt.store.revision import REVISION
from rlgpt.store.writer import Writer

HERE = Path(__file__).parent
SHOWN = {path.stem: path for path in sorted((HERE / "shown").glob("*.json"))}

EXPLAINED = {
    r"seq$": "the decisions are rows now, so that later rows have higher numbers",
    r".*\.accepted_version$": (
        "of an earlier plan it was the version that today's rules accept; now it is the one that was in use under that "
        "plan, as it was decided then"
    ),
}
OF_A_SCORE = {
    r".*\.successes$": "counts the episodes that succeeded; it was the score times the episodes",
    r".*\.rate$": "null: the result is `score`, a key of its own",
    r".*\.ci95\[\d\]$": "of the score itself; it was that of the score times the episodes, rounded to 0.01 episodes",
}
ADDED = r"(where\..*|where|left\..*|.*\b(score|why|acting_version|result\..*|result))$"
"""Keys that are new; everything else stands where it stood."""


def bundle(name: str) -> Path:
    beside = HERE / "shown" / f"{name}.rlgpt"
    return beside if beside.exists() else HERE / f"{name}.rlgpt"


def leaves(tree: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{place}.{key}".strip("."))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from leaves(value, f"{place}[{index}]")
    else:
        yield place, tree


def shown_today(name: str) -> dict[str, Any]:
    with viewed(bundle(name)) as folder, Reader(folder) as reader:
        tree = json.loads(json.dumps(record.whole(reader.history_at())))
    return {key: value for key, value in tree.items() if key not in ("settings", "versions")}


@pytest.mark.parametrize("name", SHOWN)
def test_an_old_session_shows_what_it_showed(name: str) -> None:
    before, now = dict(leaves(json.loads(SHOWN[name].read_text()))), dict(leaves(shown_today(name)))
    scored = now["task"] == "crafter_score"
    explained = [*EXPLAINED, *(OF_A_SCORE if scored else ())]
    lost = [place for place in before if place not in now]
    changed = [place for place in before if place in now and before[place] != now[place]]
    added = [place for place in now if place not in before]
    assert lost == []
    assert [place for place in changed if not any(re.match(known, place) for known in explained)] == []
    assert [place for place in added if not re.match(ADDED, place)] == []
    for place in changed:
        if scored and place.endswith(".rate") and before[place] is not None:  # the same score under its own name
            assert now[place] is None
            assert now[place.removesuffix("rate") + "score"] == pytest.approx(before[place], abs=1e-3)
        if scored and ".ci95[" in place:
            assert now[place] == pytest.approx(before[place], abs=1e-3)


@pytest.mark.parametrize("name", SHOWN)
def test_every_decision_of_an_old_session_has_a_reason_and_stands_before_what_it_led_to(name: str) -> None:
    with viewed(bundle(name)) as folder, Reader(folder) as reader:
        events = reader.rows("event")
        decided = [row for row in events if row["kind"] in DECISIONS]
        assert {row["kind"] for row in decided} >= {"iteration_result", "incumbent"}
        assert all(row["payload"]["why"] for row in decided)
        for iteration in reader.history_at().iterations:
            for plan in (reader.history_at().plans[number] for number in iteration.plans):
                assert set(plan.chosen) <= {item.name for item in plan.items}
            if iteration.verdict:  # at the end of the iteration its result is known, not only at the end of all
                later = [row["seq"] for row in events if row["kind"] == "phase" and row["seq"] > iteration.verdict.seq]
                then = reader.history_at(later[0] if later else None)
                assert next(i for i in then.iterations if i.seq == iteration.seq).result


@pytest.mark.parametrize("name", [name for name in SHOWN if name.startswith("0001")])
def test_a_session_is_migrated_the_same_way_wherever_it_is_met(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen as a bundle, imported, brought up to date by its next worker, and exported again."""
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    with viewed(bundle(name)) as folder, Reader(folder) as reader:
        assert reader.notice
        seen = reader.history_at()
    made = import_bundle(bundle(name))
    with Reader(made) as reader:
        assert reader.history_at() == seen
    again = export_bundle(made.path, tmp_path / "again.rlgpt")
    with viewed(again) as folder, Reader(folder) as reader:
        assert reader.notice == "" and reader.history_at() == seen
    with Writer(made) as writer:
        assert writer.history == seen
    with contextlib.closing(sqlite3.connect(made.database)) as base:
        assert base.execute("SELECT version_num FROM alembic_version").fetchone() == (REVISION,)
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            base.execute("UPDATE event SET kind = 'x'")
    with Writer(made) as writer:
        assert writer.history == seen, "once is enough"


def test_a_migration_keeps_what_names_a_row(tmp_path: Path) -> None:
    """A resume names the row it goes on from, and the frames of a trial name their code version."""
    with viewed(bundle("0001-resumed")) as folder:
        with contextlib.closing(sqlite3.connect(folder.database)) as base:
            owners = {row[0] for row in base.execute("SELECT DISTINCT owner FROM frame WHERE source = 'trial'")}
            versions = dict(base.execute("SELECT seq, sub_action || version FROM code_version"))
            from_seq = base.execute(
                "SELECT json_extract(payload, '$.from_seq') FROM event WHERE kind = 'resumed'"
            ).fetchone()[0]
            update = base.execute('SELECT "update" FROM checkpoint WHERE seq = ?', (from_seq,)).fetchone()
        with Reader(folder) as reader:
            rows = {row["seq"]: row["sub_action"] + str(row["version"]) for row in reader.rows("code_version")}
            frames = reader.rows("frame", {"source": "trial"}, columns=["owner"])
            assert {rows[row["owner"]] for row in frames} == {versions[owner] for owner in owners}
            resumed = next(row for row in reader.rows("event") if row["kind"] == "resumed")
            checkpoints = {row["seq"]: row["update"] for row in reader.rows("checkpoint")}
            assert update and checkpoints[resumed["payload"]["from_seq"]] == update[0]
