"""Operators at consoles of a session that trains: what they do, what every console shows of it, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlgpt.store.commands import parse_command
from rlgpt.store.history import History
from rlgpt.store.inbox import send
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.consoles import (
    BACKSPACE,
    CTRL_HOME,
    CTRL_S,
    DELETE,
    DOWN,
    ENTER,
    ESCAPE,
    F4,
    F7,
    SHIFT_TAB,
    attached,
    command,
    console,
    freeze,
    states,
    thaw,
    training,
)

LONG = {
    "loop": {"iterations": 3, "target": 1.0, "dev_first": 8},
    "budget": {"env_steps": 5_000_000},
    "method": {"whole_budget": True},
}
"""PPO runs of more than a million env steps."""


@pytest.fixture(scope="module")
def session(make_shared: Make) -> Iterator[Running]:
    """In PPO; every test leaves it running."""
    session = make_shared("collect_iron", **LONG)
    session.until(training, 150)
    yield session


def newest(history: History) -> int:
    plan = history.plan
    assert plan is not None
    return plan.revision


def test_what_one_console_does_every_console_shows_and_a_read_only_one_does_nothing(session: Running) -> None:
    with attached(session) as one, attached(session, size=(200, 60)) as two, attached(session, "--read-only") as three:
        three.until("READ-ONLY")
        one.press("a")
        one.until("It stands word for word")
        one.press("Mind the lava." + CTRL_S)
        one.until(lambda text: "It stands word for word" not in text)
        for t in (one, two, three):
            t.press("zG")
            t.until(lambda text: "advise: agent slow, text Mind the lava." in text and " applied" in text)
        before = session.history().commands
        three.press("oapTQbve")
        three.read(0.5)
        assert "It stands word for word" not in three.text() and "override the plan" not in three.text()
    after = session.until(lambda h: h.seq > 0)
    assert after.commands == before
    assert [(a.agent, a.text) for a in after.advice] == [("slow", "Mind the lava.")]


def test_a_budget_is_changed_from_the_status_line_to_the_worker(session: Running) -> None:
    with attached(session) as t:
        t.until("/5M")
        t.press("b")
        t.until("New limit over the whole session")
        t.keys(BACKSPACE)  # the limit that stands is selected
        t.press(ENTER)
        t.until("A number, or the word none for no limit.")
        t.keys("6000000", ENTER)
        t.until("/6M")
    assert session.history().budgets == {"env_steps": 6_000_000}


def test_a_stale_edit_is_a_conflict_that_the_operator_can_read_and_take_over(session: Running) -> None:
    base = newest(session.until(training))
    names = [item.name for item in session.history().plan.items]  # type: ignore[union-attr]
    with attached(session) as t:
        t.press("o")
        t.until("override the plan")
        t.press("p")
        t.until("1 edit on plan")
        answer = command(
            session, "override", session.folder.id, "--revision", str(base), "--sub-action", names[1], "--mode", "rl"
        )
        assert answer["state"] == "applied"
        t.until(f"Plan {base + 1} by operator came meanwhile: a worker refuses edits of plan {base}.")
        t.until(f"R takes over 1 of 1 edit onto plan {base + 1}.")
        t.press("A")
        t.until("the plan has moved on")
        t.press("R")
        t.until(lambda text: "came meanwhile" not in text and f"on plan {base + 1}" in text)
        t.press("A")
        t.until(lambda text: "1 Plan" in text and f"Plan {base + 2}" in text)
        pin = parse_command("override", {"edits": [{"op": "pin", "name": names[2]}], "apply": "now"})
        stale = send(session.folder, pin, base)
        t.press("zG")
        t.until(lambda text: " refused" in text and f"by now it is revision {base + 2}" in text)
        t.press("z")
    history = session.until(lambda h: newest(h) == base + 2)
    assert history.plan is not None and history.commands[stale].state == "refused"
    assert (history.plan.items[0].pinned, history.plan.items[1].mode) == (True, "rl")


def test_a_command_is_queued_until_the_worker_sees_it_and_then_shown_as_applied(session: Running) -> None:
    session.until(training)
    with attached(session) as t:
        pids = freeze(session)
        try:
            t.press("a")
            t.until("It stands word for word")
            t.press("Drink in time." + CTRL_S)
            t.until("advise: sent")
            t.press("zG")
            t.until(" queued   advise: agent slow, text Drink in time.")
        finally:
            thaw(pids)
        t.until(" applied  advise: agent slow, text Drink in time.")


def test_code_that_may_not_run_is_refused_in_the_editor_with_its_line_and_better_code_is_sent(session: Running) -> None:
    session.until(training)
    with attached(session, size=(120, 50)) as t:
        t.keys("2", "e")
        t.until("f7 asks the action host")
        t.keys(CTRL_HOME, "import os", ENTER)
        t.until("1  import os")
        t.keys(F7)
        t.until(lambda text: "not admitted" in text and "line 1" in text)
        t.keys(CTRL_S, CTRL_HOME, DELETE * len("import os\n"))
        t.until(lambda text: "f7 asks" in text and "import os" not in text)
        t.keys("# by hand", ENTER)
        t.until("1  # by hand")
        t.keys(ESCAPE)
        t.until("What you changed was not sent.")
        t.keys("n")
        t.until(lambda text: "What you changed was not sent." not in text)
        assert states(session.history(), "edit_code") == [], "refused code was sent"
        t.keys(F7)
        t.until("admitted: this may run")
        t.keys(CTRL_S)
        t.until("edit code: sent")
        history = session.until(lambda h: "applied" in states(h, "edit_code"), 60)
        assert history.attempts[-1].author == "operator"
        t.until(lambda text: "by operator" in text and "# by hand" in text)


def test_a_reward_from_the_operators_own_editor_replaces_that_of_the_fast_agent(session: Running) -> None:
    run = max(session.until(training).runs)
    with attached(session, size=(120, 50), EDITOR="sed -i 's/return 0.0/return 0.01/'") as t:
        t.press("e")
        t.until("f7 asks the action host")
        unfocused = t.colours("coded action")
        t.press(SHIFT_TAB)
        t.until(lambda _: t.colours("coded action") != unfocused)
        t.press(ENTER)
        t.until("reward function")
        t.keys(DOWN, ENTER)
        t.until("Added at every env step")
        t.keys(F4)
        t.until("return 0.01")
        t.keys(CTRL_S)
        t.until("edit reward: sent")
    history = session.until(lambda h: "applied" in states(h, "edit_reward") and max(h.runs) > run, 60)
    assert history.runs[run].state == "superseded"


def test_ending_a_ppo_run_early_keeps_what_it_learnt(session: Running) -> None:
    run = max(session.until(training).runs)
    with attached(session) as t:
        t.press("T")
        t.until("The PPO run ends at the next decision")
        t.press("n")
        t.until(lambda text: "The PPO run ends" not in text)
        assert states(session.history(), "stop_training") == []
        t.press("T")
        t.until("The PPO run ends at the next decision")
        t.press("y")
        history = session.until(lambda h: h.runs[run].state != "running", 60)
        assert history.runs[run].state in ("finished", "stopped"), history.runs[run].state
        session.until(lambda h: any(e.run == run for i in h.iterations for e in i.evaluations), 60)


def test_a_resize_storm_while_it_trains_ends_with_the_right_screen(session: Running) -> None:
    with attached(session) as t:
        for step in range(30):
            t.resize(30 + step * 5, 8 + step)
            t.press("123456789"[step % 8])
        for size in ((80, 24), (200, 60), (120, 40)):
            t.resize(*size)
            text = t.until(lambda screen: "LIVE" in screen and "q detach" in screen)
            assert max(map(len, text.splitlines())) <= size[0]


def test_leaving_a_console_stops_nothing_and_stopping_is_asked_about(session: Running) -> None:
    with attached(session) as t:
        t.press("q")
        assert t.wait() == 0
    assert session.supervisor is not None and session.supervisor.poll() is None
    with attached(session) as t:
        t.press("p")
        t.until("Paused; p lets it go on.")
        t.press("p")
        t.until(lambda text: "Paused" not in text)
        t.press("Q")
        t.until("The session ends cleanly within 10 seconds")
        t.press("y")
        t.until(lambda text: "stopped" in text and "R goes on where it stopped" in text, 60)
        assert b"\x07" in t.raw and b"\x1b]9;" in t.raw
    with console(session.environment["RLGPT_HOME"]) as t:
        t.until("stopped")
        assert session.history().result == "stopped"
