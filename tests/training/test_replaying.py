"""A replay gives recorded answers to the questions that they were given to, and is refused for any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlgpt.store.creation import create as store_session
from rlgpt.store.folder import sessions
from rlgpt.store.settings import Settings
from rlgpt.training.session.creation import REFUSED, CannotCreate, create

RECORDED: dict[str, Any] = {"task": "collect_drink", "seed": 3, "loop": {"iterations": 1}}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session whose requests had other words than today's."""
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    versions = {"wording": "of another time"}
    return store_session(Settings(**RECORDED), task_info={}, world_version="1", versions=versions).id


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"task": "place_table"}, "task collect_drink, not place_table"),
        ({"seed": 4}, "seed 3, not 4"),
        ({"loop": {"iterations": 2}}, "loop.iterations 1, not 2"),
        ({"method": {"arm": "code"}}, "method.arm rlgpt, not code"),
        ({"critic": "none", "seed": 4}, "seed 3, not 4; critic model, not none"),
    ],
)
def test_a_replay_of_other_questions_is_refused_before_it_is_made(
    recorded: str, other: dict[str, Any], named: str
) -> None:
    with pytest.raises(CannotCreate, match=f"session {recorded} was recorded with {named}: ") as refused:
        create(RECORDED | {"llm": {"kind": f"replay:{recorded}"}} | other)
    assert refused.value.code == REFUSED
    assert [session.id for session in sessions()] == [recorded]


def test_other_words_and_what_no_request_holds_are_no_other_questions(recorded: str) -> None:
    last = recorded
    for _ in range(2):  # a replay of a replay too
        settings = RECORDED | {"loop": {"iterations": 1, "test_episodes": 5}, "name": "", "budget": {"env_steps": 9}}
        last = create(settings | {"llm": {"kind": f"replay:{last}"}})["id"]
    assert len(sessions()) == 3
