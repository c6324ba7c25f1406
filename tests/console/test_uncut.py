"""Nothing is cut so that it misleads."""

from __future__ import annotations

import unicodedata

import pytest
from moments import moment
from sample_sessions import whole
from test_insight import said

from rlgpt.console.view import code, compare, diff, verdicts
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.sessions import entries
from rlgpt.console.view.text import fit, line, plain, width_of
from rlgpt.store.catalog import Summary


@pytest.mark.parametrize("width", [36, 78, 118, 198])
def test_every_session_of_a_comparison_is_on_the_screen_with_its_whole_result(width: int) -> None:
    moments = [moment(whole()) for _ in range(12)]
    for place, m in enumerate(moments):
        m.history.session["name"] = f"session-{place:02}"
    lines = [each for entry in compare.table(moments, 0, width) for each in entry.lines]
    assert all(width_of(each) <= max(width, 41) for each in lines)
    text = "\n".join(map(plain, lines))
    assert all(f"session-{place:02}" in text for place in range(12))
    assert text.count("0.74 [0.65, 0.82] n=100") == 12 or width < 41


def scored() -> Moment:
    s = whole()
    s.rows[0][1]["task_info"] = s.rows[0][1]["task_info"] | {"kind": "score", "milestones": ["collect_wood"]}
    for table, row in s.rows:
        if table == "evaluation":
            row |= {"score": 0.147, "score_low": 0.132, "score_high": 0.163}
    return moment(s)


@pytest.mark.parametrize("width", [66, 78, 118, 198])
def test_of_a_score_too_a_comparison_says_of_how_many_episodes_it_is(width: int) -> None:
    lines = [plain(each) for entry in compare.table([scored() for _ in range(5)], 0, width) for each in entry.lines]
    assert all(len(each) <= width for each in lines)
    assert "\n".join(lines).count("score 14.7% [9.1, 22.9] n=100") == 5


def test_text_with_marks_is_cut_only_where_it_does_not_fit() -> None:
    for text in (unicodedata.normalize("NFD", "đã tìm thấy quặng sắt ở bàn"), "हीरा खोजें और लोहे का कुदाल बनाएं"):
        wide = width_of(line(text))
        assert plain(fit(line(text), wide)) == text
        assert plain(fit(line(text), wide - 1)).endswith("…")


def test_a_change_behind_the_middle_is_seen_side_by_side() -> None:
    head = "        if d is not None and d < 11 - view.food and (not dark or d < "
    old, new = [head + "3):"], [head + "2):"]
    rows = diff.rows(old, new)
    shown = "\n".join(plain(each) for each in diff.split(rows, [line(new[0])], code.SPLIT_FROM))
    assert "3):" in shown and "2):" in shown


@pytest.mark.parametrize("width", [29, 36, 45])
def test_how_often_the_critic_agrees_is_never_cut(width: int) -> None:
    (head,) = [e for e in verdicts.entries(moment(whole()), width) if e.key == "agreement"]
    agreed, judged = verdicts.agreement(moment(whole()).history)
    assert all(width_of(each) <= width for each in head.lines)
    assert f"{agreed}/{judged}" in said([head])


@pytest.mark.parametrize(("score", "shown"), [(None, "630/1000 test"), (0.147, "score 14.7% n=1000 test")])
def test_the_list_of_sessions_says_of_how_many_episodes_a_result_is_and_of_which(
    score: float | None, shown: str
) -> None:
    found = Summary("a", task="dig", model="rules", test_successes=630, test_episodes=1000, test_score=score)
    (entry,) = entries([found], 160, 0.0)
    assert shown in said([entry]) and "…" not in said([entry])
