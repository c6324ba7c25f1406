"""The list of plan revisions: author, reason, and what each changed."""

from __future__ import annotations

import re
from pathlib import Path

from driving import SIZES, console, screen_text, until
from hypothesis import given
from hypothesis import strategies as st
from moments import moment
from sample_sessions import whole
from story import Story

from rlgpt.console.view import plan as plan_view
from rlgpt.console.view import revisions
from rlgpt.console.view.text import plain
from rlgpt.store import events
from rlgpt.store.history import History, Item, PlanState


def item(name: str, **fields: object) -> Item:
    usual = {"mode": "code", "goal": "g", "reason": "r", "done_when": "d", "max_steps": 9, "pinned": False}
    return Item(**{"name": name, "author": "slow", **usual, **fields})  # type: ignore[arg-type]


def planned(revision: int, items: list[Item], status: str = "superseded", sub_task: int = 0) -> PlanState:
    return PlanState(sub_task, 0, revision, "slow", "policy", "why", 0, {}, revision, items, status)


def test_a_revision_says_what_it_did_to_the_one_before() -> None:
    h = moment(whole()).history
    found = {r.plan.revision: r for r in revisions.revisions(h)}
    assert found[1].before is None and found[1].changes == ()
    last = found[4]
    assert last.before is h.plans[3]
    changed = {change.sub_action: change for change in last.changes}
    assert set(changed) == {"collect_stone"} and changed["collect_stone"].author == "operator"
    fields = {field.field: (field.before, field.after) for field in changed["collect_stone"].fields}
    assert fields["mode"] == ("code", "rl") and fields["pinned"] == (False, True)


def test_added_removed_and_moved_sub_actions_are_told_apart() -> None:
    before = planned(1, [item("a"), item("b"), item("c"), item("gone")])
    after = planned(2, [item("b"), item("c"), item("a"), item("new")], "in_force")
    found = {c.sub_action: c.kind for c in revisions.changes(after, before)}
    assert found == {"a": "moved", "new": "added", "gone": "removed"}


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


@given(NAMES, NAMES)
def test_the_changes_lead_from_one_plan_to_the_other(first: list[str], second: list[str]) -> None:
    before, after = planned(1, [item(n) for n in first]), planned(2, [item(n) for n in second], "in_force")
    kinds = {c.sub_action: c.kind for c in revisions.changes(after, before)}
    assert {n for n, kind in kinds.items() if kind == "removed"} == set(first) - set(second)
    assert {n for n, kind in kinds.items() if kind == "added"} == set(second) - set(first)
    stayed = [n for n in first if n in second and n not in kinds]
    assert stayed == [n for n in second if n in stayed], "what is not said to have moved has kept its order"
    if first == second:
        assert not kinds


def test_the_first_plan_of_another_sub_task_is_compared_with_nothing() -> None:
    h = History(plans={1: planned(1, [item("a")]), 2: planned(2, [item("b")], "in_force", sub_task=1)})
    assert revisions.revisions(h)[1].before is None


def test_a_waiting_plan_is_shown_by_what_it_changes() -> None:
    s = whole(ended=False)
    s.plan(1, 5, waiting=True, drop=("place_table",))
    s.event(events.Waiting("approval of plan revision 5"))
    m = moment(s)

    def waiting(expanded: frozenset[str] = frozenset()) -> str:
        entries = plan_view.entries(m, 90, expanded)
        text = "\n".join(plain(line) for entry in entries for line in entry.lines)
        return text[text.index("Plan 5 ") :]

    assert "place_table  removed" in waiting() and "make_wood_pickaxe" not in waiting()
    assert re.search(r"\d sub-actions as in plan 4", waiting())
    assert "make_wood_pickaxe" in waiting(frozenset({"plan:5"}))


def tried_again(sub_task: int, number: int, done_when: str) -> Story:
    """A session whose code failed in its first iteration, and a plan of a later one with the same sub-action."""
    s = Story()
    s.open()
    s.add("iteration", sub_task=0, number=0)
    s.plan(0, 1)
    s.attempt(0, 1, "collect_wood", "def collect_wood(view):\n    yield 0\n", 1)
    s.add("iteration", sub_task=sub_task, number=number)
    s.add("plan", sub_task=sub_task, iteration=number, revision=2, author="slow", executor="policy")
    s.add(
        "sub_action", revision=2, position=0, name="collect_wood", mode="code", goal="g", reason="r",
        done_when=done_when, max_steps=200,
    )  # fmt: skip
    s.event(events.PlanInForce(2))
    s.phase("Plan", sub_task=sub_task, iteration=number)
    return s


def state_of_wood(s: Story) -> str:
    plan = s.history.plans[2]
    return plan_view.state_of_item(moment(s), plan, plan.items[0])[2]


def test_what_was_tried_for_another_sub_task_is_not_told_of_this_one() -> None:
    assert state_of_wood(tried_again(1, 0, "view.inventory['wood'] >= 9")) == "not tried"


def test_older_code_that_was_tried_again_in_this_iteration_is_not_called_untried() -> None:
    s = tried_again(0, 1, "view.inventory['wood'] >= 4")
    assert state_of_wood(s) == "not tried"
    trial = next(row for table, row in s.rows if table == "trial")
    stamp = ("seq", "session_id", "incarnation", "at", "active")
    again = {"iteration": 1, "revision": 2, "successes": 2}
    s.add("trial", **{name: value for name, value in trial.items() if name not in stamp} | again)
    assert state_of_wood(s) == "v1 failed 2/5"


def test_the_list_is_the_same_in_a_replay_as_it_was_live() -> None:
    s = whole()
    seq = next(p.seq for p in moment(s).history.plans.values() if p.revision == 3)
    then = revisions.entries(moment(s, seq).history, 80)
    assert [entry.key for entry in then] == ["revision:3", "revision:2", "revision:1"]


async def test_the_plan_pane_lists_the_revisions_and_goes_back(home: Path, store: object) -> None:
    store("261121-010000-aa")  # type: ignore[operator]
    for size in SIZES:
        async with console(home, "261121-010000-aa", size) as (app, pilot):
            await pilot.press("1", "d")
            await until(pilot, lambda: "against plan 3" in screen_text(app))
            text = screen_text(app)
            assert "active · by operator" in text and "mode code → rl" in text
            await pilot.press("d")
            await until(pilot, lambda: "against plan 3" not in screen_text(app))
