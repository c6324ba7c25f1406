"""Nothing that a person typed or edited is dropped without a question."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import console, screen_text, until
from sample_sessions import whole
from stored import append
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input, Select, TextArea

from rlgpt.console import launch
from rlgpt.console.app import ConsoleApp
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.panes.bars import Bar
from rlgpt.console.panes.code import CodePane
from rlgpt.console.screens.budget import BudgetDialog
from rlgpt.console.screens.dialogs import Advise, Confirm
from rlgpt.console.screens.edit_code import EditCodeScreen
from rlgpt.console.screens.fork import ForkDialog
from rlgpt.console.screens.item import ItemDialog
from rlgpt.console.screens.override import OverrideScreen
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.screens.sessions import SessionsScreen
from rlgpt.console.screens.verdict import VerdictDialog
from rlgpt.console.view.numbers import typed
from rlgpt.store import events as store_events
from rlgpt.store import inbox
from rlgpt.store.commands import parse_command
from rlgpt.store.errors import NoSession
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease
from rlgpt.store.progress import Progress
from rlgpt.store.reader import Reader

LIVE = "261121-020000-bb"


@pytest.fixture
def live(store: Callable[..., Path], home: Path) -> Path:
    store(LIVE, whole(LIVE, ended=False))
    return home


async def override_editor(app: ConsoleApp, pilot: Pilot[int]) -> OverrideScreen:
    """Opened from the session screen."""
    await pilot.press("o")
    await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
    assert isinstance(app.screen, OverrideScreen)
    return app.screen


@pytest.mark.parametrize("opened_on", [LIVE, None])
@pytest.mark.parametrize("key", ["q", "escape", "ctrl+q"])
async def test_the_override_editor_asks_before_it_drops_edits(live: Path, key: str, opened_on: str | None) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, opened_on) as (app, pilot):
            if opened_on is None:
                await pilot.press("enter")
                await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
            await pilot.press("o")
            await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
            await pilot.press("m", key)
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            assert "edits of the plan were not sent" in screen_text(app)
            await pilot.press("n")
            await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
            assert isinstance(app.screen, OverrideScreen) and app.screen.draft.changed
            await pilot.press(key, "y")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            await pilot.press("o")
            await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))


@pytest.mark.parametrize("key", ["o", "question_mark", "I", "colon", "a"])
async def test_a_key_behind_the_one_that_leaves_opens_nothing(live: Path, key: str) -> None:
    """Such as the rest of a text that was pasted after a dialog had closed."""
    async with console(live, LIVE) as (app, pilot):
        for pressed in ("q", key):
            app.post_message(events.Key(pressed, None))
        await until(pilot, lambda: not app.is_running or app._exit)
        assert len(app.screen_stack) <= 3
    assert app.return_code == 0


async def test_the_code_of_a_pane_that_was_never_drawn_can_be_edited(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE, size=(80, 24)) as (app, pilot):
            assert isinstance(app.screen, SessionScreen)
            shown = app.screen.shown_attempt
            pane = app.screen.query_one(CodePane)
            pane.moment = None
            assert shown is not None and app.screen.shown_attempt == shown
            await pilot.press("e")
            await until(pilot, lambda: isinstance(app.screen, EditCodeScreen))
            assert f"Edit {shown.sub_action}" in screen_text(app)


async def test_a_budget_that_is_spent_already_is_asked_about(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("b")
            await until(pilot, lambda: isinstance(app.screen, BudgetDialog))
            field = app.screen.query_one("#value", Input)
            field.focus()
            field.value = "1"
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            assert "are spent: with a budget of 1" in " ".join(screen_text(app).replace("│", " ").split())
            await pilot.press("n")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            with Reader(SessionFolder(live / "sessions" / LIVE)) as reader:
                assert not reader.commands()


async def test_empty_advice_is_asked_for_and_not_dropped(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("a")
            await until(pilot, lambda: isinstance(app.screen, Advise))
            await pilot.press("ctrl+s")
            await until(pilot, lambda: "Say what the agent is to know." in screen_text(app))
            assert isinstance(app.screen, Advise)


@pytest.mark.parametrize(
    ("keys", "dialog"),
    [
        (("a",), Advise), (("v",), VerdictDialog), (("b",), BudgetDialog), (("o", "e"), ItemDialog),
        (("o", "a"), ItemDialog),
    ],
)  # fmt: skip
async def test_a_dialog_asks_before_it_drops_what_was_typed(
    live: Path, keys: tuple[str, ...], dialog: type[Advise | VerdictDialog | BudgetDialog | ItemDialog]
) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            for key in keys:
                await pilot.press(key)
                await pilot.pause(0.1)
            await until(pilot, lambda: isinstance(app.screen, dialog))
            field = next(iter(app.screen.query("#goal, #text, #cause, #value")))
            if isinstance(field, TextArea):
                field.text = "typed"
            else:
                assert isinstance(field, Input)
                field.value = "typed"
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            await pilot.press("n")
            await until(pilot, lambda: isinstance(app.screen, dialog))
            await pilot.press("escape", "y")
            await until(pilot, lambda: not isinstance(app.screen, dialog | Confirm))


async def test_a_guard_is_made_turned_into_an_option_and_unmade_in_the_sub_action_editor(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):

            async def opened() -> ItemDialog:
                await pilot.press("e")
                await until(pilot, lambda: isinstance(app.screen, ItemDialog))
                assert isinstance(app.screen, ItemDialog)
                return app.screen

            await pilot.press("o")
            await until(pilot, lambda: isinstance(app.screen, OverrideScreen))
            editor = app.screen
            assert isinstance(editor, OverrideScreen)
            dialog = await opened()
            name, mode = dialog.query_one("#name", Input).value, dialog.query_one("#mode", Select)
            dialog.query_one("#trigger", Input).value = "view.drink < 4"
            mode.value = "rl"
            dialog.action_send()
            await until(pilot, lambda: "a guard is code" in screen_text(app))
            mode.value = "code"
            dialog.action_send()
            await until(pilot, lambda: app.screen is editor)
            found = editor.draft.item(name)
            assert found is not None and found.trigger == "view.drink < 4"
            await until(pilot, lambda: "runs when" in screen_text(app))
            await pilot.press("m")
            await until(pilot, lambda: "tried when" in screen_text(app))
            assert (other := editor.draft.item(name)) is not None and other.is_option
            dialog = await opened()
            dialog.query_one("#trigger", Input).value = ""
            dialog.action_send()
            await until(pilot, lambda: "An option is tried from where" in screen_text(app))
            dialog.query_one("#mode", Select).value = "code"
            dialog.action_send()
            await until(pilot, lambda: app.screen is editor)
            found = editor.draft.item(name)
            assert found is not None and found.trigger == ""


async def test_the_edits_of_a_refused_override_come_back_once_with_the_whole_reason(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE, size=(80, 24)) as (app, pilot):
            screen = app.screen
            assert isinstance(screen, SessionScreen)
            commands = screen.controller.moment.history.commands  # type: ignore[union-attr]
            refused = [c for c in commands.values() if c.kind == "override"][-1]
            assert refused.state == "refused"
            assert not (await override_editor(app, pilot)).draft.edits  # another console sent it
            await pilot.press("escape")
            screen.controller.sent[refused.id] = "override"
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            editor = await override_editor(app, pilot)
            assert [edit.model_dump(exclude_none=True) for edit in editor.draft.edits] == refused.payload["edits"]
            await until(pilot, lambda: " ".join(refused.reason.split()) in " ".join(screen_text(app).split()))
            await pilot.press("escape", "y")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            assert not (await override_editor(app, pilot)).draft.edits  # they were dropped


async def test_a_predicate_that_may_not_run_is_told_before_an_override_is_sent(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            screen = await override_editor(app, pilot)
            name = screen.draft.items[0].name
            for predicate, is_sent in (('open("/etc/passwd")', False), ("view.inventory['wood'] >= 2", True)):
                screen._edit({"op": "set", "name": name, "done_when": predicate})
                told: list[str] = []
                app.tell = lambda sentence, *_, told=told, **__: told.append(sentence)  # type: ignore[method-assign]
                await pilot.press("A")
                await until(pilot, lambda told=told: len(told) > 1, seconds=60)
                assert predicate in told[1] if not is_sent else told[1] == "override: sent", told
                with Reader(SessionFolder(live / "sessions" / LIVE)) as reader:
                    assert len(reader.commands()) == is_sent
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))


async def test_an_override_is_not_sent_behind_a_question_that_came_meanwhile(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, world: str) -> None: ...

        def ask(self, *_: object) -> dict[str, object]:
            asked.set()
            assert may_answer.wait(60)
            return {"ok": True}

        def close(self) -> None: ...

    monkeypatch.setattr("rlgpt.console.screens.override.Checker", Slow)
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            editor = await override_editor(app, pilot)
            editor._edit({"op": "set", "name": editor.draft.items[0].name, "done_when": "view.health > 3"})
            await pilot.press("A")
            await until(pilot, asked.is_set)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            may_answer.set()
            await until(pilot, lambda: not editor._is_checking)
            assert isinstance(app.screen, Confirm)
            with Reader(SessionFolder(live / "sessions" / LIVE)) as reader:
                assert not reader.commands()


async def test_an_override_that_cannot_be_checked_here_is_left_to_the_worker(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(world: str) -> object:
        raise Failure(f"the world {world} is not installed", Exit.UNAVAILABLE)

    monkeypatch.setattr("rlgpt.console.screens.override.Checker", missing)
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            screen = await override_editor(app, pilot)
            screen._edit({"op": "set", "name": screen.draft.items[0].name, "done_when": "view.health > 3"})
            await pilot.press("A")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            with Reader(SessionFolder(live / "sessions" / LIVE)) as reader:
                assert len(reader.commands()) == 1


async def test_env_steps_of_a_superscript_are_refused_in_the_dialog(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await override_editor(app, pilot)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ItemDialog))
            app.screen.query_one("#max_steps", Input).value = "²"
            await pilot.press("ctrl+s")
            await until(pilot, lambda: "a whole number from 1" in screen_text(app))
            assert isinstance(app.screen, ItemDialog)


@pytest.mark.parametrize("text", ["nan", "1e999", "1e23", "-1"])
async def test_a_budget_that_cannot_be_is_refused_in_the_dialog(live: Path, text: str) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("b")
            await until(pilot, lambda: isinstance(app.screen, BudgetDialog))
            app.screen.query_one("#name", Select).value = "cost"
            await pilot.pause()
            app.screen.query_one("#value", Input).value = text
            await pilot.press("ctrl+s")
            await until(pilot, lambda: "A budget is a number from 0" in screen_text(app))
            assert isinstance(app.screen, BudgetDialog)


@pytest.mark.parametrize("text", ["2,5", "0,500", "12,34", "1,2345", ",5", "1,000,5", "2.5,000", ""])
def test_a_comma_that_stands_before_no_three_digits_is_not_read_over(text: str) -> None:
    """2,5 USD were 25."""
    with pytest.raises(ValueError):
        typed(text)
    assert [typed(number) for number in ("1,000", " 12,345,678.5 ", "1_000", "2.5")] == [1e3, 12345678.5, 1e3, 2.5]


@pytest.mark.parametrize("opens", ["enter", "a"])
async def test_a_name_that_the_plan_has_is_refused_in_the_dialog(live: Path, opens: str) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            taken = (await override_editor(app, pilot)).draft.items[1].name
            await pilot.press(opens)
            await until(pilot, lambda: isinstance(app.screen, ItemDialog))
            for field, text in (("name", taken), ("goal", "another goal"), ("done_when", "view.health > 3")):
                app.screen.query_one(f"#{field}", Input).value = text
            await pilot.press("ctrl+s")
            await until(pilot, lambda: f"already has a sub-action '{taken}'" in " ".join(screen_text(app).split()))
            assert app.screen.query_one("#goal", Input).value == "another goal"


async def test_the_fork_dialog_asks_before_it_drops_what_was_typed(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        await pilot.press("x", "escape")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        assert app.screen.query_one("#name", Input).value == "x"


async def test_keys_right_behind_tab_go_to_the_next_field(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        for key in ("a", "tab", "b"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        fields = [app.screen.query_one(field, Input) for field in ("#name", "#settings")]
        await until(pilot, lambda: sum(len(field.value) for field in fields) == 2)
        assert [field.value for field in fields] == ["a", "b"]


async def test_a_fork_under_way_is_left_without_a_question(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "run", lambda *_, **__: None)
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        await pilot.press("x", "ctrl+s", "escape")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))


async def test_enter_in_a_field_of_a_verdict_sends_nothing(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("v")
            await until(pilot, lambda: isinstance(app.screen, VerdictDialog))
            app.screen.query_one("#cause", Input).focus()
            await pilot.press("h", "enter")
            await pilot.pause()
            assert isinstance(app.screen, VerdictDialog)
            assert app.focused is not None and app.focused.id == "advice_slow"


async def test_a_budget_dialog_in_which_nothing_was_typed_is_left_at_once(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("b")
            await until(pilot, lambda: isinstance(app.screen, BudgetDialog))
            app.screen.query_one("#name", Select).value = "cost"
            await pilot.pause()
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))


async def test_a_verdict_is_not_sent_before_its_outcome_is_chosen(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("v")
            await until(pilot, lambda: isinstance(app.screen, VerdictDialog))
            app.screen.query_one("#cause", Input).value = "it waits"
            await pilot.press("ctrl+s")
            await until(pilot, lambda: "Say whether it failed or succeeded." in screen_text(app))
            app.screen.query_one("#success", Select).value = "yes"
            await pilot.press("ctrl+s")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
            with Reader(SessionFolder(live / "sessions" / LIVE)) as reader:
                (sent,) = reader.commands()
            assert sent["payload"]["success"] is True


async def test_a_session_that_is_deleted_elsewhere_is_said_to_be_gone(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        folder = SessionFolder(live / "sessions" / LIVE)
        shutil.rmtree(folder.path)
        with pytest.raises(NoSession, match="was deleted or moved"):
            inbox.send(folder, parse_command("pause", {}))
        await until(pilot, lambda: "was deleted or moved" in line_of(app.screen.query_one("#banner", Bar)))
        await pilot.press("z", "z")
        await until(pilot, lambda: "was deleted or moved" in line_of(app.screen.query_one("#banner", Bar)))


def line_of(bar: Bar) -> str:
    return bar.render_line(0).text


async def test_the_session_below_a_dialog_goes_on(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgpt.console.screens.session.BELOW", 0.0)
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("a")
            await until(pilot, lambda: isinstance(app.screen, Advise))
            drawn = app.screen_stack[-2].query_one("#status", Bar)
            assert "finished" not in line_of(drawn)
            story = whole(LIVE, ended=False)
            written = len(story.rows)
            story.event(store_events.Ended(status="finished", reason="all 4 iterations are done"))
            append(live / "sessions" / LIVE, story.rows[written:], {})
            await until(pilot, lambda: "finished" in line_of(drawn))
            assert isinstance(app.screen, Advise)


async def test_what_was_said_last_reaches_the_session_below_a_dialog(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it was drawn a moment before, and nothing comes after it."""
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("a")
            await until(pilot, lambda: isinstance(app.screen, Advise))
            below = app.screen_stack[-2]
            assert isinstance(below, SessionScreen)
            monkeypatch.setattr("rlgpt.console.screens.session.BELOW", 1e9)
            story = whole(LIVE, ended=False)
            written = len(story.rows)
            story.event(store_events.Ended(status="finished", reason="all 4 iterations are done"))
            append(live / "sessions" / LIVE, story.rows[written:], {})
            await until(pilot, lambda: below.controller.moment and below.controller.moment.history.status == "ended")
            assert "finished" not in line_of(below.query_one("#status", Bar))
            monkeypatch.setattr("rlgpt.console.screens.session.BELOW", 0.0)
            await until(pilot, lambda: "finished" in line_of(below.query_one("#status", Bar)))


@pytest.mark.parametrize("dialog", [False, True])
async def test_the_age_of_the_last_progress_grows_while_nothing_happens(
    live: Path, monkeypatch: pytest.MonkeyPatch, dialog: bool
) -> None:
    monkeypatch.setattr("rlgpt.console.screens.session.BELOW", 0.0)
    with Lease.acquire(live / "sessions" / LIVE):
        progress = Progress(live / "sessions" / LIVE)
        progress.phase("training")
        began, passed = time.time(), [3.0]
        async with console(live, LIVE, clock=lambda: began + passed[0]) as (app, pilot):
            bar = app.screen.query_one("#status", Bar)
            if dialog:
                await pilot.press("a")
                await until(pilot, lambda: isinstance(app.screen, Advise))
            await until(pilot, lambda: "♥ 3s ago" in bar.render_line(2).text)
            passed[0] = 17.0
            await until(pilot, lambda: "♥ 17s ago" in bar.render_line(2).text)
        progress.close()


async def test_who_has_been_in_the_list_comes_back_to_it(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_session_that_was_opened_from_the_shell_is_left_for_the_shell(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_session_that_is_deleted_below_a_dialog_is_said_to_be_gone_behind_it(live: Path) -> None:
    async with console(live, LIVE) as (app, pilot):
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ForkDialog))
        below = app.screen_stack[-2]
        assert isinstance(below, SessionScreen)
        shutil.rmtree(live / "sessions" / LIVE)
        await until(pilot, lambda: not below.controller.opened)
        await pilot.press("escape")
        await until(pilot, lambda: "was deleted or moved" in line_of(below.query_one("#banner", Bar)))


async def test_a_dialog_says_that_its_answer_comes_too_late(live: Path) -> None:
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await pilot.press("v")
            await until(pilot, lambda: isinstance(app.screen, VerdictDialog))
            app.screen.query_one("#cause", Input).value = "it walks past the table"
            story = whole(LIVE, ended=False)
            written = len(story.rows)
            story.event(store_events.Ended(status="finished", reason="all 4 iterations are done"))
            append(live / "sessions" / LIVE, story.rows[written:], {})
            await until(pilot, lambda: "the session has ended" in screen_text(app))
            assert app.screen.query_one("#cause", Input).value == "it walks past the table"


async def test_a_rejection_says_that_its_plan_is_decided(live: Path) -> None:
    story = whole(LIVE, ended=False)

    def add(write: Callable[[], None]) -> None:
        written = len(story.rows)
        write()
        append(live / "sessions" / LIVE, story.rows[written:], {})

    add(lambda: story.plan(1, 5, "operator", waiting=True))
    with Lease.acquire(live / "sessions" / LIVE):
        async with console(live, LIVE) as (app, pilot):
            await until(pilot, lambda: "plan 5" in screen_text(app))
            await pilot.press("X")
            await until(pilot, lambda: "Reject plan 5" in screen_text(app))
            await pilot.press("n", "o")
            add(lambda: story.plan(1, 6, "operator", waiting=True))
            await until(pilot, lambda: "plan 6 has taken its place" in screen_text(app))
            add(lambda: story.event(store_events.PlanInForce(revision=6)))
            await until(pilot, lambda: "no plan waits for approval" in screen_text(app))
            assert app.screen.query_one(TextArea).text == "no"
