"""Exports: JSON lines come back equal; CSV, TensorBoard and HTML say what the rows say and interpret nothing."""

from __future__ import annotations

import csv
import json
import platform
import re
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboardX.proto import event_pb2

from rlgpt.store import events
from rlgpt.store import export as exports
from rlgpt.store import tables as t
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import AlreadyThere, BadBundle, MissingExtra, StoreError
from rlgpt.store.export import FORMATS, export, import_
from rlgpt.store.export.svg import Line, chart, ticks
from rlgpt.store.export.values import cell
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.inbox import send
from rlgpt.store.reader import Reader
from rlgpt.store.revision import REVISION
from rlgpt.store.row_types import MetricRow
from rlgpt.store.writer import Writer

HOSTILE = [
    "[bold]markup[/bold] [@click=app.quit]x[/] [/foo]",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b]0;title\x07",
    "=cmd|'/c calc'!A1",
    "+1+1",
    "@SUM(A1)",
    "-2+3",
    "wide \U0001f600 e\u0301 \u202egnirts",
    "nul \x00 inside",
    "line " * 20_000,
    '"; DROP TABLE event; --',
]


@pytest.fixture
def hostile(session: SessionFolder) -> SessionFolder:
    with Writer(session) as writer:
        writer.add(t.Iteration(sub_task=0, number=0))
        for revision, words in enumerate(HOSTILE, 1):
            with writer.transaction() as tx:
                tx.add(
                    t.Plan(
                        sub_task=0,
                        iteration=0,
                        revision=revision,
                        author=words[:50],
                        executor="policy",
                        rationale=words,
                    )
                )
                tx.add(
                    t.SubAction(
                        revision=revision, position=0, name=words[:40], mode="code", goal=words, reason=words,
                        done_when=words, max_steps=3,
                    )
                )  # fmt: skip
                tx.event(events.PlanInForce(revision))
                tx.add(
                    t.CodeVersion(
                        sub_task=0, iteration=0, sub_action=words[:40], version=1, attempt=1, author="fast",
                        source_hash=writer.text(words),
                    )
                )  # fmt: skip
                tx.log("info", words, more=words)
                tx.add(
                    t.Verdict(
                        sub_task=0, iteration=0, revision=1, sub_action=None, version=None, author="critic",
                        success=False, confidence=1.0, cause=words,
                    )
                )  # fmt: skip
        rest = {"source_hash": "f" * 32, "arguments": {}, "prior": None}
        slots = [{"slot": n, "name": words, **rest} for n, words in enumerate(HOSTILE)]
        run = {"sub_task": 0, "iteration": 0, "revision": 1, "run": 1, "config_hash": "", "env_steps_planned": 9}
        writer.add(t.TrainingRun(**run, slots=slots))
        for update in (1, 2, 3):
            usage = dict.fromkeys(HOSTILE, update)
            row = {
                "run": 1,
                "update": update,
                "env_steps": update * 10,
                "decisions": 1,
                "episodes": 4,
                "successes": update,
            }
            writer.add(t.Metric(**row, return_mean=update / 2, option_usage=usage))
    return session


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_takes_any_text_and_never_overwrites(form: str, hostile: SessionFolder, tmp_path: Path) -> None:
    with Reader(hostile) as reader:
        before = reader.changes_since(0, None)
    target = export(hostile, form, tmp_path / "out" / "x")
    assert target == tmp_path / "out" / "x" and target.exists()
    assert [p.name for p in target.parent.iterdir()] == ["x"]
    with pytest.raises(AlreadyThere, match="is already there"):
        export(hostile, form, target)
    with Reader(hostile) as reader:
        assert reader.changes_since(0, None) == before


def test_an_unknown_format_is_one_sentence(finished: SessionFolder) -> None:
    with pytest.raises(StoreError, match="there is no export format 'xml'; there are bundle, evidence, jsonl"):
        export(finished, "xml")


# ---- JSON lines -----------------------------------------------------------------------------------
@pytest.mark.parametrize("which", ["finished", "hostile"])
def test_json_lines_come_back_equal(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    session = request.getfixturevalue(which)
    send(session, parse_command("advise", {"agent": "slow", "text": HOSTILE[2]}))
    lines = export(session, "jsonl", tmp_path / "x.jsonl")
    with Reader(session) as reader:
        before = reader.changes_since(0, None), reader.commands(), {n: reader.text(n) for n in reader.texts()}
    shutil.rmtree(session.path)
    assert import_(lines) == session
    with Reader(session) as reader:
        assert (reader.changes_since(0, None), reader.commands(), {n: reader.text(n) for n in reader.texts()}) == before


BAD_LINES: dict[str, tuple[Callable[[list[str]], object], str]] = {
    "no head": (lambda lines: lines.pop(0), "its first line is not that of"),
    "an id that is a path": (lambda lines: lines.__setitem__(0, lines[0].replace('"id":"', '"id":"../')), "first line"),
    "a newer schema": (
        lambda lines: lines.__setitem__(0, lines[0].replace(f'"{REVISION}"', '"0099"')),
        "has schema '0099'",
    ),
    "cut off": (lambda lines: lines.__delitem__(slice(-3, None)), "is cut off: the line that counts"),
    "a line missing": (lambda lines: lines.pop(-2), "has not the lines that it was written with"),
    "a line behind the last": (lambda lines: lines.append(lines[-2]), "has not the lines that it was written with"),
    "no JSON": (lambda lines: lines.insert(3, "{"), "line 4 of .* is no JSON"),
    "no object": (lambda lines: lines.insert(3, "[]"), "line 4 of .* is no object"),
    "too deep": (lambda lines: lines.insert(3, "[" * 100_000), "line 4 of .* is no JSON"),
    "no table": (lambda lines: lines.insert(3, '{"table":"sqlite_master","row":{}}'), "names no table"),
    "other columns": (lambda lines: lines.insert(3, '{"table":"event","row":{"seq":3}}'), "has not its columns"),
    "a text of another hash": (
        lambda lines: lines.insert(-1, '{"table":"text","row":{"hash":"00","text":"x"}}'),
        "is not what its name says",
    ),
    "a row twice": (lambda lines: lines.insert(3, lines[2]), "cannot be stored: event rows are never changed"),
    **{
        f"{number} for a time": (
            lambda lines, number=number: lines.__setitem__(3, re.sub(r'"at":[^,]+', f'"at":{number}', lines[3])),
            "line 4 of .* holds what no row can",
        )
        for number in ("9e999", "-9e999", "NaN", "Infinity")
    },
    "NaN deep inside": (
        lambda lines: lines.insert(3, '{"table":"log","row":{"fields":{"a":[{"b":NaN}]}}}'),
        "line 4 of .* holds what no row can",
    ),
    "half a pair": (
        lambda lines: lines.insert(-1, '{"table":"text","row":{"hash":"00","text":"\\ud800"}}'),
        "line .* holds what no row can",
    ),
    "a number that is a text": (
        lambda lines: lines.__setitem__(1, lines[1].replace('"at":', '"at":"x","_":')),
        "columns",
    ),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_lines_are_refused_and_leave_nothing(name: str, finished: SessionFolder, tmp_path: Path) -> None:
    change, sentence = BAD_LINES[name]
    path = export(finished, "jsonl", tmp_path / "x.jsonl")
    shutil.rmtree(finished.path)
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("\n".join(lines))
    with pytest.raises(BadBundle, match=sentence):
        import_(path)
    assert sessions() == [] and list(finished.path.parent.iterdir()) == []


def test_lines_of_an_earlier_version_that_are_not_counted_are_taken(finished: SessionFolder, tmp_path: Path) -> None:
    path = export(finished, "jsonl", tmp_path / "x.jsonl")
    shutil.rmtree(finished.path)
    lines = path.read_text().splitlines()
    head = json.loads(lines[0])
    assert head.pop("counted")
    path.write_text("\n".join([json.dumps(head), *lines[1:-1]]))
    assert import_(path) == finished


@pytest.mark.parametrize("form", ["bundle", "evidence", "jsonl", "csv"])
def test_of_two_exports_to_one_place_the_second_is_refused(
    form: str, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, looked = tmp_path / "x", exports.explained

    def meanwhile(database: Path) -> StoreError | None:
        """Another process is faster once this one has seen that nothing is there."""
        monkeypatch.setattr(exports, "explained", looked)
        export(finished, form, target)
        return looked(database)

    monkeypatch.setattr(exports, "explained", meanwhile)
    with pytest.raises(AlreadyThere, match="x is already there"):
        export(finished, form, target)
    assert target.exists() and [path for path in tmp_path.iterdir() if path.name != "home"] == [target]


@pytest.mark.parametrize("form", ["bundle", "evidence", "jsonl", "csv", "tensorboard"])
@pytest.mark.parametrize("name", ["x" * 255, "é" * 127], ids=["letters", "letters of two bytes"])
def test_a_file_may_have_the_longest_name_that_there_is(
    form: str, name: str, finished: SessionFolder, tmp_path: Path
) -> None:
    assert export(finished, form, tmp_path / name).exists()
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == [name]


# ---- CSV ------------------------------------------------------------------------------------------
def test_csv_has_every_row_and_no_cell_that_a_spreadsheet_would_run(hostile: SessionFolder, tmp_path: Path) -> None:
    folder = export(hostile, "csv", tmp_path / "x")
    csv.field_size_limit(1_000_000)
    with Reader(hostile) as reader:
        for table in reader.tables():
            with (folder / f"{table}.csv").open(newline="") as file:
                rows = list(csv.DictReader(file))
            stored = reader.rows(table)
            assert [int(row["seq"]) for row in rows] == [row["seq"] for row in stored]
            for row in rows:
                assert not any(value.startswith(("=", "+", "@", "\t", "\r")) for value in row.values())
    with (folder / "plan.csv").open(newline="") as file:
        told = [row["rationale"] for row in csv.DictReader(file)]
    assert told[3] == "'=cmd|'/c calc'!A1" and told[8] == "nul \ufffd inside" and told[0] == HOSTILE[0]


def test_cells_keep_numbers_and_count_bytes() -> None:
    assert [cell(v) for v in (1.5, -2, None, b"abc", {"a": [1]}, "-1")] == [1.5, -2, None, 3, '{"a": [1]}', "'-1"]


# ---- TensorBoard ----------------------------------------------------------------------------------
def _events(path: Path) -> list[Any]:
    """The messages of an event file: each has its length and a checksum before it, and a checksum behind it."""
    body, events = path.read_bytes(), []
    while body:
        (length,) = struct.unpack("<Q", body[:8])
        events.append(event_pb2.Event.FromString(body[12 : 12 + length]))
        body = body[16 + length :]
    return events


def test_event_files_hold_the_metrics_by_env_steps(hostile: SessionFolder, tmp_path: Path) -> None:
    folder = export(hostile, "tensorboard", tmp_path / "x")
    (file,) = (folder / "run-1").iterdir()
    assert platform.node() not in file.name and file.stat().st_mode & 0o077 == 0
    scalars: dict[tuple[int, str], float] = {
        (event.step, value.tag): value.simple_value for event in _events(file) for value in event.summary.value
    }
    assert {step for step, _ in scalars} == {10, 20, 30}
    assert scalars[30, "return_mean"] == 1.5 and scalars[30, "success_rate"] == 0.75
    usage = [value for (step, tag), value in scalars.items() if step == 30 and tag.startswith("option_usage/")]
    assert 3.0 in usage and (30, "kl") not in scalars
    with Reader(hostile) as reader:
        row = next(row for row in reader.rows(MetricRow) if row["env_steps"] == 30)
    where = {"seq", "incarnation", "at", "active", "run", "update", "env_steps"}
    numbers = {name for name, value in row.items() if isinstance(value, (int, float)) and name not in where}
    assert {tag for step, tag in scalars if step == 30} >= numbers, "a new column is exported too"


def test_an_evaluation_that_was_extended_is_one_point_of_all_its_episodes(
    new_session: Callable[..., SessionFolder], tmp_path: Path
) -> None:
    session = new_session()
    same: dict[str, Any] = {
        "sub_task": 0, "iteration": 0, "revision": 1, "split": "dev", "variant": "full", "run": None, "policy": "plan",
        "return_mean": 0.0, "length_mean": 9.0, "dead_loops": 0, "env_steps": 9, "ci_low": 0.0, "ci_high": 1.0,
    }  # fmt: skip
    with Writer(session) as writer:
        writer.event(events.Started())
        writer.add(t.Iteration(sub_task=0, number=0))
        for number, (first, episodes, successes) in enumerate(((0, 20, 20), (20, 30, 27)), 1):
            writer.add(t.Evaluation(number=number, first=first, episodes=episodes, successes=successes, **same))
    (file,) = (export(session, "tensorboard", tmp_path / "x") / "evaluation").iterdir()
    points = [(event.step, v.tag, v.simple_value) for event in _events(file) for v in event.summary.value]
    assert points == [(0, "dev/full/success", pytest.approx(0.94))]


def test_without_its_extra_the_export_says_what_to_install(
    hostile: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingExtra, match=r"pip install 'rlgpt\[tensorboard\]'"):
        export(hostile, "tensorboard", tmp_path / "x")
    assert list(tmp_path.glob("*x*")) == []


# ---- charts ---------------------------------------------------------------------------------------
@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_ticks_are_few_round_and_cover_the_range(one: float, two: float) -> None:
    low, high = min(one, two), max(one, two)
    found = ticks(low, high)
    assert 2 <= len(found) <= 9 and found == sorted(found)
    slack = 1e-6 * max(abs(low), abs(high), 1e-9)
    assert found[0] <= low + slack and found[-1] >= high - slack


def test_a_chart_without_values_says_so() -> None:
    assert "no values" in chart("x", [Line("a", [])], "env steps")
    assert chart("x", [Line("a", [(5.0, 1.0)])], "env steps").count("<circle") == 1


def test_the_legend_of_a_chart_names_every_line_and_no_two_look_alike() -> None:
    lines = [Line(f"option_{n}", [(0.0, n / 10), (1.0, n / 10)]) for n in range(14)]
    drawn = chart("usage", lines, "env steps")
    legend = re.findall(r"<li class=(c\d)>(\S) (\w+)</li>", drawn)
    assert [name for _, _, name in legend] == [line.name for line in lines]
    assert len({(colour, glyph) for colour, glyph, _ in legend}) == 14
    paths = re.findall(r'<path class="line (c\d)"([^>]*?) d=', drawn)
    assert len(set(paths)) == 14


@pytest.mark.parametrize("form", ["bundle", "jsonl"])
def test_a_copied_folder_is_exported_under_the_id_of_its_session(
    hostile: SessionFolder, tmp_path: Path, form: str
) -> None:
    copy = tmp_path / "mycopy"
    shutil.copytree(hostile, copy)
    written = export(copy, form, tmp_path / "x")
    shutil.rmtree(hostile.path)
    assert import_(written).id == hostile.id
