"""`rlgpt experiment coverage` on a toy chain of two: its sessions, and the figure that is drawn of them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from rlgpt.console import cli
from rlgpt.console.commands import compare_coverage
from rlgpt.store.reader import Reader
from rlgpt.training import worker
from rlgpt.training.experiments.declared import trees
from rlgpt.training.opening import open_session
from rlgpt.training.session import creation

WORLD = "tests.worlds.corridor:make_scripted"
BASE = {
    "world": WORLD, "budget": {"env_steps": 1500},
    "loop": {"iterations": 1, "dev_first": 4, "dev_more": 0, "test_episodes": 4, "depth": 1},
}  # fmt: skip


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Folder of each arm's session."""
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made = {}
    for _, label, _, tree in trees("coverage", BASE, ["open_door"], [0]):
        place = Path(creation.create(tree)["folder"])
        live = open_session(place)
        try:
            worker.run(live)
        finally:
            live.close()
        made[label] = place
    return made


def test_a_hole_stops_code_alone_and_is_left_to_rl_by_the_method_and_the_figure_shows_it(
    sessions: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(sessions) == [
        "rlgpt", "code", "rlgpt without 1", "code without 1", "rlgpt without 2", "code without 2", "rl"
    ]  # fmt: skip
    modes, trained = {}, {}
    for label, place in sessions.items():
        with Reader(place) as reader:
            history = reader.history_at()
            assert history.status == "ended"
            modes[label] = [item.mode for item in history.plans[1].items]
            trained[label] = bool(history.runs)
            if label.startswith("code without"):
                assert {row["sub_action"] for row in reader.rows("code_version")} == (
                    {"unlock"} if label.endswith("1") else {"get_key"}
                )
    assert modes == {
        "rlgpt": ["code", "code"], "code": ["code", "code"], "rl": ["rl", "rl"],
        "rlgpt without 1": ["rl", "code"], "code without 1": ["rl", "code"],
        "rlgpt without 2": ["code", "rl"], "code without 2": ["code", "rl"],
    }  # fmt: skip
    assert trained == {label: label == "rl" or label.startswith("rlgpt without") for label in sessions}

    readers = [Reader(place) for place in sessions.values()]
    found = {(p.arm, p.missing, round(p.share, 3)): p.success for p in compare_coverage.points("open_door", readers)}
    for reader in readers:
        reader.close()
    whole = [key for key in found if key[1] == 0]
    assert whole == [("rlgpt", 0, 1.0), ("code", 0, 1.0)] and {found[key] for key in whole} == {1.0}
    holes = sorted(share for arm, missing, share in found if arm == "code" and missing == 1)
    assert len(holes) == 2 and sum(holes) == pytest.approx(1.0) and 0 < holes[0] < holes[1]
    assert {success for (arm, missing, _), success in found.items() if arm == "code" and missing} == {0.0}
    assert ("rl", 2, 0.0) in found

    picture = tmp_path / "coverage.svg"
    assert cli.run(["compare", *(place.name for place in sessions.values()), "--coverage", str(picture)]) == 0
    assert "rlgpt without 1" in capsys.readouterr().out
    drawn = ElementTree.parse(picture).getroot()
    dots = [e for e in drawn.iter() if e.tag.endswith("circle")]
    assert len([e for e in drawn.iter() if "line" in e.get("class", "").split()]) == 3 and len(dots) == 7
    assert compare_coverage.UNIT in "".join(drawn.itertext())


def test_the_line_never_turns_back_and_its_last_point_is_the_whole_plan() -> None:
    shares = [(0, 1.0, 0.9), (1, 0.95, 0.5), (1, 0.3, 0.7), (2, 0.97, 0.6), (2, 0.25, 0.1), (3, 0.5, 0.0)]
    (line,) = compare_coverage._lines([compare_coverage.Point("rlgpt", *values) for values in shares])
    xs = [x for x, _ in line.points]
    assert xs == sorted(xs) and line.points[-1] == (1.0, 0.9) and len(line.dots) == len(shares)
    assert line.points[0] == pytest.approx((0.275, 0.4))


def test_other_sessions_have_no_such_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made = creation.create({"task": "open_door", "world": WORLD})
    assert cli.run(["compare", made["id"], "--coverage", str(tmp_path / "no.svg")]) == 2
    assert "--coverage needs the sessions of `rlgpt experiment coverage`" in capsys.readouterr().err
    assert not (tmp_path / "no.svg").exists()
