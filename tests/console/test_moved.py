"""What the override editor says of order."""

from __future__ import annotations

from moments import moment
from sample_sessions import whole

from rlgpt.console.view import override
from rlgpt.console.view.draft import Draft
from rlgpt.console.view.text import plain
from rlgpt.store.plan_edits import parse_edit


def test_only_what_changed_its_order_is_said_to_be_moved() -> None:
    plan = moment(whole()).history.plan
    assert plan is not None and len(plan.items) > 2
    first, second = plan.items[0].name, plan.items[1].name

    def moved(edit: dict[str, object]) -> list[str]:
        entries = override.entries(Draft(plan).edited(parse_edit(edit)), None, 100)
        return [entry.key for entry in entries if entry.selectable and "moved" in plain(entry.lines[0])]

    assert moved({"op": "remove", "name": first}) == []
    assert moved({"op": "move", "name": first, "position": 1}) == [second, first]
