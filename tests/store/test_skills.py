"""The skill library and its snapshots."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from rlgpt.store import skills
from rlgpt.store.artifacts import digest
from rlgpt.store.skills import BadSkill, Skill

WOOD = Skill(
    name="collect_wood", world="crafter", task="make_stone_pickaxe", description="gather three logs",
    source="def collect_wood(view):\n    yield 'do'\n", done_when="view.count('wood') >= 3", episodes=5, successes=4,
    session_id="261121-013012-x7", kept_at=1_795_000_000.0,
)  # fmt: skip
TABLE = dataclasses.replace(WOOD, name="place_table", description="build a table", source="def place_table(view): ...")


def test_a_kept_skill_is_found_by_name_hash_and_words(home: Path) -> None:
    name = skills.keep(WOOD)
    skills.keep(TABLE)
    assert skills.find("collect_wood") == skills.find(name) == skills.find(name[:8]) == WOOD
    assert skills.skills() == [WOOD, TABLE]
    assert skills.search("LOGS three") == [WOOD] and skills.search("table") == [TABLE]
    assert skills.search("view", world="minedojo") == []
    for wanted in ("nothing", "", name[:2]):
        with pytest.raises(BadSkill, match="there is no skill"):
            skills.find(wanted)


def test_the_same_code_for_the_same_purpose_is_one_skill_with_its_longest_measurement(home: Path) -> None:
    better = dataclasses.replace(WOOD, episodes=10, successes=7, session_id="other")
    assert skills.keep(better) == skills.keep(WOOD)
    assert skills.skills() == [better]
    other = dataclasses.replace(WOOD, source="def collect_wood(view):\n    yield 'noop'\n")
    skills.keep(other)
    assert len(skills.skills()) == 2
    with pytest.raises(BadSkill, match="may mean 2 skills"):
        skills.find("collect_wood")


def test_a_retired_skill_is_out_of_use_until_it_is_restored(home: Path) -> None:
    name = skills.keep(WOOD)
    skills.retire(name)
    assert skills.skills() == [] and skills.skills(retired=True) == [WOOD]
    assert skills.read(skills.snapshot("all", "crafter")) == []
    with pytest.raises(BadSkill):
        skills.retire(name)
    skills.restore(name)
    assert skills.skills() == [WOOD]


def test_a_retired_skill_stays_so_when_a_session_finds_it_again_and_comes_back_with_an_import(home: Path) -> None:
    body = skills.export([WOOD])
    skills.retire(skills.keep(WOOD))
    skills.keep(WOOD)
    assert skills.skills() == [] and skills.skills(retired=True) == [WOOD]
    skills.import_(body)
    assert skills.skills() == [WOOD] and skills.skills(retired=True) == []


def test_exported_skills_come_back_equal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skills.keep(WOOD)
    skills.keep(TABLE)
    body = skills.export(skills.skills())
    monkeypatch.setenv("RLGPT_HOME", str(home / "elsewhere"))
    assert skills.skills() == []
    assert skills.import_(body) == [WOOD, TABLE] == skills.skills()
    assert skills.export(skills.skills()) == body


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../../evil"},
        {"name": "Not a name"},
        {"episodes": -1},
        {"successes": 9},
        {"episodes": True},
        {"source": "x" * 20_001},
        {"source": 3},
        {"kept_at": "now"},
        {"kept_at": float("nan")},
        {"kept_at": float("inf")},
        {"kept_at": -1.0},
        {"kept_at": 10**400},
        {"episodes": 10**9 + 1},
        {"source": "def collect_wood(view):\n    yield '\ud800'\n"},
        {"description": "\ud800"},
        {"session_id": "\x00"},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_file_with_one_bad_skill_is_refused_whole(home: Path, change: dict[str, object]) -> None:
    body = {"format": skills.FORMAT, "skills": [dataclasses.asdict(TABLE), dataclasses.asdict(WOOD) | change]}
    with pytest.raises(BadSkill):
        skills.import_(json.dumps(body).encode())
    assert skills.skills() == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"format": "rlgpt-skills-1"}'])
def test_a_file_of_something_else_is_one_sentence(home: Path, body: bytes) -> None:
    with pytest.raises(BadSkill, match="this is no file of skills"):
        skills.import_(body)


def test_a_snapshot_stays_what_it_was_and_is_named_by_its_bytes(home: Path) -> None:
    skills.keep(WOOD)
    before = skills.snapshot("all", "crafter")
    skills.keep(TABLE)
    after = skills.snapshot("all", "crafter")
    assert skills.read(before) == [WOOD] and skills.read(after) == [WOOD, TABLE]
    assert skills.snapshot(digest(before), "crafter") == skills.snapshot(digest(before)[:8], "crafter") == before
    assert skills.read(skills.snapshot("none", "crafter")) == [] == skills.read(skills.snapshot("all", "minedojo"))
    with pytest.raises(BadSkill, match="no snapshot of skills starts with 0123456789ab"):
        skills.snapshot("0123456789ab", "crafter")


def test_a_damaged_file_is_named(home: Path) -> None:
    skills.keep(WOOD)
    (path,) = (home / "skills").glob("*.json")
    path.write_text("{")
    with pytest.raises(BadSkill, match=r"\.json holds no skill"):
        skills.skills()


def test_agents_are_told_purpose_code_and_measurement() -> None:
    assert WOOD.told()["measured"] == "4/5" and WOOD.told()["goal"] == "gather three logs"
