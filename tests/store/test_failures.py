"""How lost episodes are told, and which of many are."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.store.failures import choose, cover, ended, told

LOST: dict[str, Any] = {
    "seed": 7, "end": "death", "cause": "zombie", "steps": 231, "vitals": {"health": 0.0, "food": 5.0},
    "doing": "collect_iron", "undone": "collect_iron",
    "timeline": [{"step": 0, "doing": "", "health": 9}, {"step": 25, "doing": "collect_wood", "health": 9,
                                                         "holds": {"wood": 2}}],
    "last": [{"step": 231, "doing": "collect_iron", "did": "move_left", "line": 4, "code": 'view = yield "move_left"',
              "changed": {"health": [2, 0]}}],
    "before": {"step": 223, "picture": "..Z\n.@."}, "after": {"step": 231, "picture": ".Z.\n.@."},
}  # fmt: skip


def test_a_lost_episode_is_told_in_full() -> None:
    text = told(LOST)
    assert text.splitlines()[0] == (
        "seed 7: the agent died, killed by: zombie after 231 env steps in collect_iron; first sub-action not done: "
        "collect_iron; then health 0, food 5"
    )
    assert "    25 collect_wood: health 9, holds (wood 2)" in text.replace("   25", "    25")
    assert 'collect_iron, line 4 `view = yield "move_left"`: move_left; health 2 -> 0' in text
    assert "step 223:\n..Z\n.@." in text and "the end, step 231:\n.Z.\n.@." in text
    assert "timeline" not in told(LOST, timeline=False)


def test_deaths_are_counted_by_their_cause() -> None:
    assert [ended("death", "lava"), ended("death"), ended("death", None), ended("time", "")] == [
        "death: lava", "death", "death", "time"
    ]  # fmt: skip


def test_one_of_each_way_to_be_lost_is_chosen_first_and_the_commonest_way_before() -> None:
    def lost(seed: int, cause: str) -> dict[str, Any]:
        return {"seed": seed, "steps": 1, "end": "death", "cause": cause, "undone": "x"}

    causes = ("lava", "zombie", "zombie", "zombie", "lava", "thirst")
    many = [lost(seed, cause) for seed, cause in enumerate(causes, 1)]
    assert [failure["seed"] for failure in choose(many, 4)] == [2, 1, 6, 3]
    assert choose([], 4) == []


def test_each_sub_action_that_lost_an_episode_has_one() -> None:
    many: list[dict[str, Any]] = [
        {"seed": seed, "steps": 1, "end": "death", "cause": "zombie", "undone": "iron"} for seed in range(9)
    ]
    many += [{"seed": 9 + n, "steps": 1, "end": "time", "undone": undone} for n, undone in enumerate("abcc")]
    chosen = cover(many, 2)
    assert {failure["undone"] for failure in chosen} == {"iron", "a", "b", "c"} and len(chosen) == 4
    assert cover(many[:9], 2) == many[:2] and cover([], 2) == []


@pytest.mark.parametrize(
    "change",
    [
        {"end": 3}, {"cause": ["x"]}, {"timeline": "no"}, {"timeline": [3]}, {"timeline": [{"step": "x"}]},
        {"last": [{"step": 1}]}, {"last": [{"step": 1, "doing": "a", "did": "b", "changed": {"x": 1}}]},
        {"last": [{"step": 1, "doing": "a", "did": "b", "line": 3}]}, {"vitals": [1]}, {"undone": {}},
    ],
)  # fmt: skip
def test_what_is_no_failure_is_left_out(change: dict[str, Any]) -> None:
    assert choose([LOST | change, LOST], 4) == [LOST]
    assert told(LOST | {"before": 3, "after": {"picture": "x"}})
