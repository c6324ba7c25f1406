from __future__ import annotations

import csv
import json
import struct
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rlgpt.console.exports import report, rows, tensorboard
from rlgpt.console.exports.plot import chart
from rlgpt.store import tables
from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from rlgpt.store.writer import Writer

from .conftest import Answer, make, write_iteration, write_plan

Cli = Callable[..., Answer]
HOSTILE = "</pre><script>alert(1)</script>\x1b]0;title\x07[@click=app.quit]x[/]=1+1\x00"


@pytest.fixture
def hostile() -> SessionFolder:
    session = make("<img src=x onerror=alert(1)>")
    with Writer(session) as writer:
        write_plan(writer)
        write_iteration(writer)
        with writer.transaction() as tx:
            source = writer.text(HOSTILE)
            tx.add(
                tables.CodeVersion(
                    sub_task=0, iteration=0, sub_action="strike", version=1, attempt=1, author=HOSTILE,
                    source_hash=source, note="=cmd", admitted=False, admission={"message": HOSTILE},
                )
            )  # fmt: skip
    return session


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_report_interprets_nothing_that_a_model_wrote(hostile: SessionFolder) -> None:
    with Reader(hostile) as reader:
        page = report.page(reader)
    tags = Tags()
    tags.feed(page)
    assert not tags.seen & {"script", "img", "link", "iframe"}
    assert not [name for name in tags.attributes if name.startswith("on") or name in ("src", "href")]
    assert not [c for c in page if ord(c) < 32 and c != "\n"]
    assert "alert(1)" in page


def test_a_report_tells_the_test_result_with_its_interval(finished: SessionFolder) -> None:
    with Reader(finished) as reader:
        page = report.page(reader)
    assert "0.90 [0.83, 0.94] n=100" in page and "def find_tree(view):" in page
    assert "scripted planner" in page


def test_json_lines_hold_every_row_once_and_every_text_that_a_row_names(hostile: SessionFolder) -> None:
    with Reader(hostile) as reader:
        found = [json.loads(line) for line in rows.json_lines(reader)]
        every = reader.changes_since(0, None)
    told = [row for row in found if row["table"] != "text"]
    assert [(row["table"], row["seq"]) for row in told] == [(table, row["seq"]) for table, row in every]
    texts = {row["hash"]: row["text"] for row in found if row["table"] == "text"}
    assert all(row["source_hash"] in texts for row in told if row["table"] == "code_version")
    assert HOSTILE in texts.values()


def test_a_csv_cell_is_never_a_formula(hostile: SessionFolder, tmp_path: Path) -> None:
    with Reader(hostile) as reader:
        files = rows.write_csv(reader, tmp_path / "out")
    for path in files:
        with path.open(newline="") as file:
            cells = [cell for line in csv.reader(file) for cell in line]
        assert not [cell for cell in cells if cell[:1] in ("=", "+", "@")]
    assert "'=cmd" in (tmp_path / "out" / "code_version.csv").read_text()


def test_crc32c_gives_the_published_check_value() -> None:
    assert tensorboard.crc32c(b"123456789") == 0xE3069283
    assert tensorboard.crc32c(b"\x00" * 32) == 0x8A9136AA


def events(path: Path) -> Iterator[bytes]:
    body, place = path.read_bytes(), 0
    while place < len(body):
        (length,) = struct.unpack_from("<Q", body, place)
        (head,) = struct.unpack_from("<I", body, place + 8)
        event = body[place + 12 : place + 12 + length]
        (tail,) = struct.unpack_from("<I", body, place + 12 + length)
        assert head == tensorboard.masked(body[place : place + 8]) and tail == tensorboard.masked(event)
        yield event
        place += 16 + length


def test_a_tensorboard_file_is_whole_records_that_begin_with_the_version(
    finished: SessionFolder, tmp_path: Path
) -> None:
    with Reader(finished) as reader:
        path = tensorboard.write(reader, tmp_path)
        expected = list(tensorboard.scalars(reader))
    first, *others = events(path)
    assert first.endswith(b"brain.Event:2") and len(others) == len(expected)
    assert b"evaluation/test/full" in b"".join(others)


def test_an_event_is_the_protocol_buffer_that_tensorboard_documents() -> None:
    made = tensorboard.event(tensorboard.Scalar(2.0, 300, "a", 0.5))
    assert made == (
        b"\x09" + struct.pack("<d", 2.0) + b"\x10\xac\x02" + b"\x2a\x0a" + b"\x0a\x08" + b"\x0a\x01a" + b"\x15"
        + struct.pack("<f", 0.5)
    )  # fmt: skip


def test_updates_that_a_resume_superseded_are_no_part_of_a_curve(tmp_path: Path) -> None:
    session = make()
    with Writer(session) as writer:
        write_plan(writer)
        run = {"sub_task": 0, "iteration": 0, "revision": 1, "run": 1, "config_hash": "c", "env_steps_planned": 900}
        writer.add(tables.TrainingRun(**run))
        for update in (1, 2):
            seq = writer.add(
                tables.Metric(
                    run=1, update=update, env_steps=100 * update, decisions=1, episodes=1, successes=0, kl=update
                )
            )
        writer.event("resumed", from_seq=seq - 1, run=1, update=1, env_steps=100, cause="killed")
        writer.add(tables.Metric(run=1, update=2, env_steps=210, decisions=1, episodes=1, successes=1, kl=9.0))
    with Reader(session) as reader:
        kl = [(s.step, s.value) for s in tensorboard.scalars(reader) if s.tag == "ppo/kl"]
    assert kl == [(100, 1.0), (210, 9.0)]


def test_a_chart_stays_inside_its_frame() -> None:
    drawn = chart("t", {"a": [(0.0, -5.0), (10.0, 5.0)], "<b>": [(0.0, 1.0)]})
    points = drawn.split('points="')[1].split('"')[0].split()
    assert all(0 <= float(v) <= 520 for point in points for v in point.split(","))
    assert "<b>" not in drawn


def test_a_bundle_comes_back_as_the_same_session(
    rlgpt: Cli, finished: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = rlgpt("show", finished.id, "--json").document
    written = rlgpt("export", finished.id, "-o", tmp_path / "one.rlgpt", "--json").document
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "elsewhere"))
    assert rlgpt("import", written["path"], "--json").document["id"] == finished.id
    assert rlgpt("show", finished.id, "--json").document == shown


@pytest.mark.parametrize("format", ["bundle", "evidence", "jsonl", "csv", "tensorboard", "html"])
def test_every_format_is_written_where_one_asks(
    rlgpt: Cli, finished: SessionFolder, format: str, tmp_path: Path
) -> None:
    written = rlgpt("export", finished.id, "--format", format, "-o", tmp_path / "there", "--json").document
    assert Path(written["path"]).exists() and Path(written["path"]).is_relative_to(tmp_path / "there")


def test_a_file_that_is_no_bundle_is_refused_and_leaves_nothing(rlgpt: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.rlgpt").write_bytes(b"PK\x03\x04 not really")
    answer = rlgpt("import", tmp_path / "bad.rlgpt")
    assert answer.code == 2 and answer.err.startswith("rlgpt: ")
    assert rlgpt("sessions", "--json").document == {"sessions": []}
