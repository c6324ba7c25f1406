"""The override draft: undo is exact, what is sent makes what is shown, a rebase loses nothing silently."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from moments import moment
from sample_sessions import whole

from rlgpt.console.view import override
from rlgpt.console.view.draft import Draft
from rlgpt.console.view.text import plain
from rlgpt.store.commands import parse_command
from rlgpt.store.history import Item, PlanState
from rlgpt.store.plan_edits import BadEdit, apply_edits, parse_edit

NAMES = ("wood", "table", "stone", "iron", "coal", "new", "other", "Bad Name", "", "while")
TEXTS = st.text(max_size=12)


def plan_of(names: list[str], revision: int) -> PlanState:
    items = [Item(name, "code", f"get {name}", "why", "True", 100, False, "slow") for name in names]
    return PlanState(0, 0, revision, "slow", "sequence", "", 0, {}, 10, items)


def plans(revision: int) -> st.SearchStrategy[PlanState]:
    names = st.lists(st.sampled_from(NAMES[:5]), min_size=1, max_size=5, unique=True)
    return names.map(lambda chosen: plan_of(chosen, revision))


name = st.sampled_from(NAMES)
fields = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["code", "rl"]), "goal": TEXTS, "reason": TEXTS, "done_when": TEXTS, "trigger": TEXTS,
        "max_steps": st.integers(-1, 2001), "rename": name,
    },
)  # fmt: skip
edits = st.one_of(
    st.builds(lambda n, f: {"op": "set", "name": n, **f}, name, fields),
    st.builds(lambda n, f, p: {**f, "op": "add", "name": n, "position": p}, name, fields, st.integers(0, 6)),
    st.builds(lambda n, p: {"op": "move", "name": n, "position": p}, name, st.integers(0, 6)),
    st.builds(lambda op, n: {"op": op, "name": n}, st.sampled_from(["remove", "pin", "unpin"]), name),
    st.builds(lambda v: {"op": "executor", "value": v}, st.sampled_from(["sequence", "policy"])),
)
steps = st.lists(st.one_of(edits, st.sampled_from(["undo", "redo"])), max_size=14)


def edited(base: PlanState, actions: list[Any]) -> list[Draft]:
    """The drafts that the actions lead through; what does not fit is refused and changes nothing."""
    found = [Draft(base)]
    for action in actions:
        draft = found[-1]
        try:
            found.append(getattr(draft, action)() if isinstance(action, str) else draft.edited(parse_edit(action)))
        except BadEdit as error:
            assert str(error)
            continue
    return found


@given(plans(1), steps)
def test_what_is_shown_is_what_the_edits_that_are_sent_make_of_the_base(base: PlanState, actions: list[Any]) -> None:
    draft = edited(base, actions)[-1]
    assert apply_edits(base, draft.edits) == (draft.executor, list(draft.items))
    names = [item.name for item in draft.items]
    assert names and len(set(names)) == len(names)
    for item in draft.items:
        origin = draft.origin(item.name)
        assert origin is None or origin in base.items
    if draft.edits:
        sent = parse_command("override", {"edits": list(draft.edits), "apply": "now"})
        assert parse_command("override", sent.payload()) == sent


@given(plans(1), steps)
def test_undoing_everything_is_the_base_and_redoing_it_is_the_draft(base: PlanState, actions: list[Any]) -> None:
    draft = edited(base, actions)[-1]
    back = draft
    while back.edits:
        back = back.undo()
    assert back.items == tuple(base.items) and not back.changed
    while back.edits != draft.edits:
        back = back.redo()
    assert back.items == draft.items


@given(plans(1), plans(2), steps)
def test_a_rebase_keeps_what_fits_and_names_what_does_not(old: PlanState, new: PlanState, actions: list[Any]) -> None:
    draft = edited(old, actions)[-1]
    rebased, lost = draft.rebased(new)
    assert rebased.base is new
    assert apply_edits(new, rebased.edits) == (rebased.executor, list(rebased.items))
    assert all(lost)
    same, none = draft.rebased(plan_of([item.name for item in old.items], 3))
    assert (same.executor, same.items, none) == (draft.executor, draft.items, [])


def test_each_undo_takes_one_edit_back_also_of_the_same_sub_action() -> None:
    base = plan_of(["wood"], 1)
    goal, mode = ({"op": "set", "name": "wood", **change} for change in ({"goal": "other"}, {"mode": "rl"}))
    twice = Draft(base).edited(parse_edit(goal)).edited(parse_edit(mode))
    assert (twice.items[0].goal, twice.items[0].mode) == ("other", "rl")
    once = twice.undo()
    assert (once.items[0].goal, once.items[0].mode) == ("other", "code") and once.redo().items == twice.items


def test_only_what_changed_its_order_is_said_to_be_moved() -> None:
    plan = moment(whole()).history.plan
    assert plan is not None and len(plan.items) > 2
    first, second = plan.items[0].name, plan.items[1].name

    def moved(edit: dict[str, object]) -> list[str]:
        entries = override.entries(Draft(plan).edited(parse_edit(edit)), None, 100)
        return [entry.key for entry in entries if entry.selectable and "moved" in plain(entry.lines[0])]

    assert moved({"op": "remove", "name": first}) == []
    assert moved({"op": "move", "name": first, "position": 1}) == [second, first]
