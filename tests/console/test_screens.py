"""Each screen as text at three sizes (`--snapshot-update` writes them), and the keys that lead there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import SIZES, console, screen_text, still, until
from sample_sessions import CHOP_2, whole
from story import STARTED, Story
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from rlgpt.console import launch
from rlgpt.console.app import ConsoleApp
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.panes.bars import TimelineBar
from rlgpt.console.panes.code_area import CodeArea
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens import sessions
from rlgpt.console.screens.compare import CompareScreen
from rlgpt.console.screens.edit_code import EditCodeScreen
from rlgpt.console.screens.operator import Operator
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.view.text import plain, width_of
from rlgpt.store.lease import Lease

TASKS = {
    "world": "crafter",
    "version": "1.8.3",
    "tasks": [
        {
            "id": "collect_wood",
            "prompt": "Harvest wood from a tree.",
            "horizon": 500,
            "kind": "goal",
            "long_horizon": False,
        },
        {
            "id": "make_stone_pickaxe",
            "prompt": "Make a stone pickaxe.",
            "horizon": 500,
            "kind": "goal",
            "long_horizon": False,
        },
        {"id": "collect_diamond", "prompt": "Mine a diamond.", "horizon": 500, "kind": "goal", "long_horizon": True},
    ],
}
FINDINGS = {
    "ok": False,
    "findings": [
        {"area": "rlgpt", "item": "version", "ok": True, "sentence": "rlgpt 0.1.0", "cure": "", "optional": False},
        {
            "area": "gpu",
            "item": "gpu",
            "ok": False,
            "sentence": "no NVIDIA GPU",
            "cure": "none is needed",
            "optional": True,
        },
        {
            "area": "store",
            "item": "place",
            "ok": False,
            "sentence": "a network file system",
            "cure": "set RLGPT_HOME",
            "optional": False,
        },
    ],
}


class ScreenText(SingleFileSnapshotExtension):
    _file_extension = "txt"
    file_extension = "txt"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Any, **_: Any) -> str:
        return str(data)


@pytest.fixture
def shown(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(ScreenText)


@pytest.fixture
def place(home: Path, store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of three sessions; child processes are answered from here. The home is named the same everywhere."""

    from rlgpt.store import folder
    from rlgpt.store.skills import Skill, keep

    store("261121-010000-aa")
    store("261121-020000-bb", whole("s-2", llm="openai", ended=False, started=STARTED + 5_000))
    monkeypatch.setattr(folder, "free_bytes", lambda _: 10**12)
    monkeypatch.setattr("rlgpt.store.catalog.disk_bytes", lambda _: 1_234_567)

    def answer(app: Any, question: str, *_: Any, then: Any = None, **__: Any) -> None:
        known = {
            "tasks": TASKS,
            "doctor": FINDINGS,
            "worlds": {"worlds": ["crafter"]},
            "prices": {"gpt-5-mini": [0.25, 2.0]},
        }
        if then and question in known:
            app.call_later(then, known[question])

    monkeypatch.setattr(launch, "run", answer)
    monkeypatch.setattr(launch, "ask", answer)
    keep(
        Skill(
            "collect_wood",
            "crafter",
            "collect_wood",
            "Collect 4 wood.",
            CHOP_2,
            "view.inventory['wood'] >= 4",
            5,
            5,
            "s-demo",
            STARTED,
        )
    )
    monkeypatch.chdir(home.parent)
    return Path("home")


LISTED = {
    "sessions": (),
    "help": ("question_mark",),
    "new": ("n",),
    "skills": ("K",),
    "doctor": ("D",),
    "compare": ("space", "space", "c"),
    "fork": ("f",),
    "delete": ("d",),
}
IN_SESSION = {
    "end": (),
    "override": ("o", "m", "j", "p"),
    "curves": ("3", "enter", "x"),
    "world": ("5",),
    "calls": ("7", "enter"),
    "verdicts-zoomed": ("4", "z"),
    "advise": ("a",),
    "verdict": ("v",),
}


async def pictures(app: ConsoleApp, pilot: Any, shown: SnapshotAssertion) -> None:
    """The screen at each size, reached by resizing the terminal under it."""
    for width, height in SIZES:
        await pilot.resize_terminal(width, height)
        await pilot.pause(0.15)
        still(app)
        await pilot.pause()
        assert screen_text(app) == shown(name=f"{width}x{height}")


@pytest.mark.parametrize("name", LISTED)
async def test_screens_from_the_list(place: Path, shown: SnapshotAssertion, name: str) -> None:
    async with console(place) as (app, pilot):
        await pilot.press(*LISTED[name])
        if name == "compare":
            await until(pilot, lambda: isinstance(app.screen, CompareScreen) and len(app.screen._moments) == 2)
        await pictures(app, pilot, shown)


@pytest.mark.parametrize("name", IN_SESSION)
async def test_session_screens(place: Path, shown: SnapshotAssertion, name: str) -> None:
    ident = "261121-020000-bb" if name in ("override", "advise", "verdict") else "261121-010000-aa"
    with Lease.acquire(place / "sessions" / ident):
        async with console(place, ident) as (app, pilot):
            for key in IN_SESSION[name]:
                await pilot.press(key)
                await pilot.pause()
            await pictures(app, pilot, shown)


async def test_an_empty_store_says_what_to_do(home: Path) -> None:
    async with console(home) as (app, _):
        assert "No sessions yet. Press n for a new one" in screen_text(app)


async def test_a_damaged_session_is_named_and_the_others_stay_readable(place: Path) -> None:
    bad = place / "sessions" / "261121-030000-cc"
    bad.mkdir()
    (bad / "session.db").write_bytes(b"no database at all" * 100)
    async with console(place) as (app, _):
        text = screen_text(app)
        assert "damaged" in text and "make_stone_pickaxe-1" in text


async def test_a_session_that_cannot_be_read_says_so_above_its_empty_panes(place: Path) -> None:
    from rlgpt.console.app import ConsoleApp

    bad = place / "sessions" / "261121-030000-cc"
    bad.mkdir()
    (bad / "session.db").write_bytes(b"no database at all" * 100)
    async with ConsoleApp(place, bad.name).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "This session cannot be read:" in screen_text(pilot.app))  # type: ignore[arg-type]


async def test_the_palette_begins_with_what_the_focused_pane_and_the_screen_can_do(place: Path) -> None:
    from rlgpt.console.actions import Actions

    async with console(place, "261121-010000-aa") as (app, pilot):
        await pilot.press("3")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "curves")
        names = [str(hit.text) async for hit in Actions(app.screen).discover()]
        here = [names.index(text) for text in ("The selected chart alone, or all again", "Logarithmic y-axis")]
        screen = [names.index(text) for text in ("The focused pane alone, or all again", "To the next plan")]
        rest = [names.index(text) for text in ("The next theme", "Theme rlgpt-dark")]
        assert max(here) < min(screen) and max(screen) < min(rest)
        found = [hit async for hit in Actions(app.screen).search("log y-ax")]
        assert [str(hit.text) for hit in found] == ["Logarithmic y-axis"]
        found = [hit async for hit in Actions(app.screen).search("least level")]
        assert [str(hit.text) for hit in found] == ["Least level shown: debug, info, warning, error"]
        found[0].command()
        await until(
            pilot, lambda: app.focused is not None and app.focused.id == "log" and app.focused.level == "warning"
        )


async def test_the_key_of_a_command_that_is_not_possible_says_why(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda _, sentence, *_more, **_options: told.append(sentence))
    async with console(place, "261121-010000-aa") as (_, pilot):
        await pilot.press("b", "R", "A", "H")
        await until(pilot, lambda: len(told) == 3)
        await pilot.press("o")
        await until(pilot, lambda: len(told) == 4)
    assert told == [
        "budget: the session has ended",
        "resume: the session has finished",
        "approve: the session has ended",
        "override: the cursor is in the past; l brings it back to the end",
    ]


async def test_a_click_on_a_tab_shows_its_pane(place: Path) -> None:
    async with console(place, "261121-010000-aa", (120, 40)) as (app, pilot):
        title = screen_text(app).splitlines()
        row, line = next((y, line) for y, line in enumerate(title) if "5 World" in line)
        await pilot.click(offset=(line.index("5 World") + 2, row))
        await until(pilot, lambda: app.focused is not None and app.focused.id == "world")
        row, line = next((y, line) for y, line in enumerate(screen_text(app).splitlines()) if "8 System" in line)
        await pilot.click(offset=(line.index("8 System"), row))
        await until(pilot, lambda: app.focused is not None and app.focused.id == "system")


async def test_a_click_on_the_timeline_leads_to_the_cell_that_was_clicked(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []
    async with console(place, "261121-010000-aa", (120, 40)) as (app, pilot):
        assert isinstance(app.screen, SessionScreen)
        monkeypatch.setattr(app.screen.controller, "go_to_share", shares.append)
        bar = app.screen.query_one(TimelineBar)
        row, line = next(
            (y, line) for y, line in enumerate(screen_text(app).splitlines()) if "━" in line and "│" not in line
        )
        first, last = len(line) - len(line.lstrip()), len(line) - 1
        assert last - first + 1 == bar.content_size.width
        for cell in (first, first + 40, last):
            await pilot.click(offset=(cell, row))
            await until(pilot, lambda cell=cell: shares and abs(shares[-1] * (last - first) - (cell - first)) < 1e-6)


async def test_the_chosen_comparison_stays_while_versions_and_actions_are_stepped_through(place: Path) -> None:
    async with console(place, "261121-010000-aa", (120, 40)) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: "collect_stone v2 by" in screen_text(app) and "against v1" in screen_text(app))
        await pilot.press("c", "c")
        await until(pilot, lambda: "against v1" not in screen_text(app))
        await pilot.press("left")
        await until(pilot, lambda: "collect_stone v1 by" in screen_text(app))
        await pilot.press("right")
        await until(pilot, lambda: "collect_stone v2 by" in screen_text(app))
        assert "against v1" not in screen_text(app)
        await pilot.press("J")
        await until(pilot, lambda: "collect_wood v2 by" in screen_text(app))
        assert "against v1" not in screen_text(app)


async def test_the_keys_of_the_list_are_back_at_once_after_its_filter(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "POLL", 1e6)
    async with console(place) as (app, pilot):
        await until(pilot, lambda: "n new" in screen_text(app).splitlines()[-1])
        await pilot.press("slash", "m")
        await until(pilot, lambda: "n new" not in screen_text(app).splitlines()[-1])
        await pilot.press("enter")
        await until(pilot, lambda: "n new" in screen_text(app).splitlines()[-1])


async def test_the_editor_colours_code_and_keeps_what_is_typed(place: Path) -> None:
    async with console(place, "261121-020000-bb") as (app, pilot):
        await pilot.press("2", "e")
        await until(pilot, lambda: isinstance(app.screen, EditCodeScreen))
        area = app.screen.query_one(CodeArea)

        def styles() -> set[str]:
            return {str(span.style) for y in range(area.document.line_count) for span in area.get_line(y).spans}

        await until(pilot, styles)
        area.text = 'def rest(view):\n    """Rest."""\n    yield "noop\x07"\n'
        await until(pilot, lambda: area.get_line(0).spans and area.get_line(1).spans)
        assert area.get_line(0).plain == "def rest(view):"
        area.move_cursor((0, 0))
        await pilot.press("x")
        assert area.get_line(0).plain == "xdef rest(view):"


async def test_code_for_the_next_iteration_tells_which_plan_its_author_saw(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(Operator, "send", lambda _, *command: sent.append(command))
    async with console(place, "261121-020000-bb") as (app, pilot):
        await pilot.press("2", "e")
        await until(pilot, lambda: isinstance(app.screen, EditCodeScreen))
        screen = app.screen
        assert isinstance(screen, EditCodeScreen)
        screen._send("def rest(view): ...", "next")
        moment = screen._session.moment
        assert moment is not None and moment.history.revision
    ((kind, payload, seen),) = sent
    assert (kind, payload["apply"], seen) == ("edit_code", "next", moment.history.revision)


async def test_starting_a_worker_is_told_from_the_key_on_until_it_fails(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    told: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda _, sentence, *_more, **_options: told.append(sentence))
    monkeypatch.setattr(launch, "resume", lambda app, ident, failed: asked.append(failed))
    async with console(place, "261121-020000-bb") as (app, pilot):
        await until(pilot, lambda: "R starts a worker again" in screen_text(app))
        await pilot.press("R")
        await until(pilot, lambda: "A worker is being started" in screen_text(app))
        await pilot.press("R")
        await until(pilot, lambda: told == ["resume: a worker is being started"])
        assert len(asked) == 1
        asked[0]()
        await until(pilot, lambda: "R starts a worker again" in screen_text(app))


async def test_what_a_dead_worker_cannot_do_is_not_offered(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda _, sentence, *_more, **_options: told.append(sentence))
    async with console(place, "261121-020000-bb") as (app, pilot):
        await until(pilot, lambda: "R resume" in screen_text(app))
        footer = screen_text(app).splitlines()[-1]
        assert "p pause" not in footer and "T end PPO" not in footer and "o override" in footer
        await pilot.press("p", "T", "Q")
        await until(pilot, lambda: len(told) == 3)
    assert all(sentence.endswith("no worker runs this session; R starts one") for sentence in told)


async def test_a_filter_is_offered_only_where_there_is_a_list(place: Path) -> None:
    async with console(place, "261121-010000-aa", (200, 60)) as (app, pilot):
        for key, pane, wanted in (("3", "curves", False), ("6", "log", True), ("1", "plan", True)):
            await pilot.press(key)
            await until(pilot, lambda pane=pane: app.focused is not None and app.focused.id == pane)
            await until(pilot, lambda wanted=wanted: ("/ filter" in screen_text(app).splitlines()[-1]) is wanted)


async def test_help_lists_all_keys_of_the_focused_pane_and_says_when_nothing_is_found(place: Path) -> None:
    async with console(place, "261121-010000-aa", (120, 40)) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: "In the focused pane" in screen_text(app))
        text = screen_text(app)
        near = text[text.index("In the focused pane") : text.index("Session")]
        assert "Next entry" in near and "A page down" in near and "Open or unfold" in near
        await pilot.press(*"xqzv")
        await until(pilot, lambda: "Nothing here has “xqzv”." in screen_text(app))


async def test_a_skill_is_shown_whole(place: Path) -> None:
    async with console(place, None, (80, 24)) as (app, pilot):
        await pilot.press("K")
        await until(pilot, lambda: "1 in use" in screen_text(app))
        detail = app.screen.query_one("#skill", Lines)
        await until(pilot, lambda: detail.entries)
        assert "…" not in "".join(plain(line) for line in detail.entries[0].lines)
        assert all(width_of(line) <= detail.width for line in detail.entries[0].lines)


async def test_the_console_is_there_while_a_session_is_made(place: Path) -> None:
    ready = threading.Event()

    def begin() -> str:
        ready.wait(60)
        return "261121-010000-aa"

    async with console(place, None, (120, 40), begin=begin) as (app, pilot):
        assert "make_stone_pickaxe-1" in screen_text(app)
        ready.set()
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)


async def test_a_session_that_cannot_be_made_is_told_in_the_open_console(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda _, sentence, *_more, **_options: told.append(sentence))

    def begin() -> str:
        raise Failure("no room on the disk", Exit.UNAVAILABLE)

    async with console(place, None, (120, 40), begin=begin) as (_, pilot):
        await until(pilot, lambda: told == ["no room on the disk"])


async def test_a_session_whose_worker_was_just_started_does_not_say_that_none_runs(
    home: Path, store: Callable[..., Path]
) -> None:
    new = Story("s-new")
    new.open()
    del new.rows[1:]
    store("261121-010000-aa", new)
    async with console(home) as (app, pilot):
        app.open_session("261121-010000-aa", begun=True)
        await until(pilot, lambda: "A worker is being started" in screen_text(app))
        assert "R starts one" not in screen_text(app)
        app.screen.operator.expect_no_worker()
        await until(pilot, lambda: "R starts one" in screen_text(app))
