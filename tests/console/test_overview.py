"""Looking at all sessions: forks as trees, the leaderboard, the inbox; and what a person sees first."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from driving import NOW, SIZES, console, screen_text, until
from moments import moment
from sample_sessions import whole
from stored import append, write
from story import Story
from textual.pilot import Pilot

from rlgpt.console import launch
from rlgpt.console.all_sessions import AllSessions
from rlgpt.console.app import ConsoleApp
from rlgpt.console.commands import children, overview
from rlgpt.console.panes.bars import Bar, Footer
from rlgpt.console.preferences import Preferences
from rlgpt.console.screens import inbox
from rlgpt.console.screens.new import NewScreen
from rlgpt.console.screens.session import SessionScreen
from rlgpt.console.screens.sessions import SessionsScreen
from rlgpt.console.screens.tour import TourScreen
from rlgpt.console.view import banner, forks, glossary, leaderboard, sessions, spending, status, tour, waiting
from rlgpt.console.view.logs import merged
from rlgpt.console.view.moment import Worker
from rlgpt.console.view.text import plain, width_of
from rlgpt.store import events, progress
from rlgpt.store.catalog import Summary
from rlgpt.store.errors import BadPlace
from rlgpt.store.history import Measured
from rlgpt.store.lease import Lease

SETTINGS = {"task": "dig", "seed": 0, "name": "", "llm": {"kind": "rules"}, "budget": {"env_steps": 1000}}


def summary(ident: str, **fields: Any) -> Summary:
    settings = SETTINGS | fields.pop("settings", {})
    usual: dict[str, Any] = {"name": f"n-{ident}", "task": "dig", "world": "crafter", "model": "rules"}
    return Summary(ident, settings=settings, **(usual | {"status": "ended", "result": "finished"} | fields))


def ranked(ident: str, successes: int, seed: int, **fields: Any) -> Summary:
    settings = {"seed": seed, "name": ident} | fields.pop("settings", {})
    return summary(ident, test_successes=successes, test_episodes=100, settings=settings, **fields)


# ---- forks ---------------------------------------------------------------------------------------
def test_forks_stand_below_their_parents_with_what_they_changed() -> None:
    found = [
        summary("c", parent_id="a", parent_seq=7, started_at=3.0, settings={"loop": {"iterations": 5}}),
        summary("a", started_at=1.0, settings={"loop": {"iterations": 3}}),
        summary("d", parent_id="b", parent_seq=9, started_at=4.0),
        summary("b", parent_id="a", parent_seq=5, started_at=2.0, settings={"loop": {"iterations": 3}}),
        summary("lost", parent_id="elsewhere", parent_seq=2, started_at=5.0),
    ]
    told = forks.branches(found)
    assert [(b.stem, b.summary.id) for b in told] == [
        ("", "a"), ("├─ ", "b"), ("│  └─ ", "d"), ("└─ ", "c"), ("", "lost")
    ]  # fmt: skip
    assert forks.place(told[3]) == "from row 7: loop.iterations=5"
    assert forks.place(told[4]) == "from row 2 of elsewhere, which is not here"
    (root, lost) = overview.forest(found)
    assert [f["id"] for f in root["forks"]] == ["b", "c"] and root["forks"][0]["forks"][0]["id"] == "d"
    assert lost["parent"] == {"id": "elsewhere", "seq": 2}


def test_a_setting_that_an_earlier_version_did_not_have_has_its_usual_value() -> None:
    found = [summary("a"), summary("b", parent_id="a", parent_seq=5, settings={"loop": {"inner": 3}, "threads": None})]
    assert [forks.place(branch) for branch in forks.branches(found)] == ["", "from row 5"]
    scores = [ranked("a", 40, 0), ranked("b", 50, 1, settings={"loop": {"inner": 3}})]
    assert len(leaderboard.rows(scores, "dig")) == 1
    assert len(leaderboard.rows([*scores, ranked("c", 50, 1, settings={"loop": {"inner": 4}})], "dig")) == 2


def test_a_fork_of_a_session_that_cannot_be_read_is_not_said_to_have_changed_everything() -> None:
    found = [Summary("a", fault="its database is damaged"), summary("b", parent_id="a", parent_seq=5)]
    assert [forks.place(branch) for branch in forks.branches(found)] == ["", "from row 5"]


def test_a_store_whose_sessions_are_each_others_parents_is_shown_without_end_or_error() -> None:
    found = [summary("a", parent_id="b", parent_seq=1), summary("b", parent_id="a", parent_seq=1), summary("c")]
    assert [(b.summary.id, b.depth) for b in forks.branches(found)] == [("c", 0), ("a", 0), ("b", 1)]


# ---- leaderboard ---------------------------------------------------------------------------------
def test_seeds_are_grouped_and_ranked_by_their_mean_with_an_interval_over_seeds() -> None:
    found = [
        ranked("a0", 90, 0), ranked("a1", 50, 1),
        ranked("b0", 75, 0, settings={"loop": {"iterations": 9}}),
        ranked("b1", 85, 1, settings={"loop": {"iterations": 9}}),
        ranked("other", 99, 0, task="swim"), summary("new"),
    ]  # fmt: skip
    first, second = leaderboard.rows(found, "dig")
    assert first.label == "rule-based model, loop.iterations=9" and first.mean == pytest.approx(0.8)
    assert second.mean == pytest.approx(0.7) and second.best.id == "a0" and second.seeds == [0, 1]
    assert first.interval is not None and first.interval[0] <= 0.8 <= first.interval[1]
    assert leaderboard.untested(found, "dig") == 1
    document = leaderboard.tree(found, "dig")
    assert document["rows"][1]["best"]["ci95"] == list(Measured(90, 100).interval)


@pytest.mark.parametrize("width", [76, 116, 196])
def test_rows_of_the_leaderboard_can_be_told_apart_at_every_width(width: int) -> None:
    found = [ranked(f"a{n}", 90 - n, 0, settings={"loop": {"iterations": n}}) for n in range(2)]
    entries = leaderboard.entries(found, "dig", width)
    texts = ["\n".join(map(plain, entry.lines)) for entry in entries]
    assert [f"loop.iterations={n}" in text for n, text in enumerate(texts)] == [True, True]
    assert all(width_of(each) <= width for entry in entries for each in entry.lines)


def test_one_seed_has_no_interval_over_seeds_and_says_so() -> None:
    (row,) = leaderboard.rows([ranked("a", 90, 4)], "dig")
    assert row.interval is None and leaderboard.mean_words(row) == "0.90, one seed"


def test_several_sessions_of_one_seed_count_as_one_seed() -> None:
    (row,) = leaderboard.rows([ranked("a", 90, 4), ranked("fork", 70, 4)], "dig")
    assert row.interval is None and leaderboard.mean_words(row) == "0.80, one seed (2 sessions)"
    (row,) = leaderboard.rows([ranked("a", 90, 4), ranked("fork", 70, 4), ranked("b", 60, 5)], "dig")
    assert row.mean == pytest.approx(0.7) and leaderboard.mean_words(row).endswith("over 2 seeds (3 sessions)")


def test_a_task_without_test_episodes_has_a_sentence() -> None:
    (entry,) = leaderboard.entries([summary("a")], "dig", 80)
    assert "held-out test episodes yet" in plain(entry.lines[0])


# ---- inbox ---------------------------------------------------------------------------------------
def test_the_inbox_has_what_only_the_operator_can_end_the_longest_first() -> None:
    live = {"alive": True, "result": ""}
    found = [
        summary("run", status="running", **live),
        summary("plan", status="waiting", waiting_for="approval of plan revision 4", waiting_since=20.0, **live),
        summary("judge", status="waiting", waiting_for="your verdict on dig_hole", waiting_since=10.0, at=90.0, **live),
        summary("slot", status="waiting", waiting_for="a training slot", **live),
        summary("model", status="waiting", waiting_for="the model", **live),
        summary("pause", status="paused", waiting_for="paused", waiting_since=30.0, at=91.0, **live),
        summary("dead", status="running", result="", at=5.0),
        summary("over"),
        summary("broken", fault="it is damaged"),
    ]
    assert [(n.summary.id, n.what) for n in waiting.needs(found)] == [
        ("dead", "its worker is dead: start one again"),
        ("judge", "give your verdict on dig_hole"),
        ("plan", "approve or reject plan 4"),
        ("pause", "paused: let it go on"),
    ]
    assert [n.since for n in waiting.needs(found)] == [5.0, 10.0, 20.0, 30.0], "a command meanwhile ends no wait"
    assert waiting.sentence(1) == "1 session waits for you" and not waiting.sentence(0)


# ---- what each role took -------------------------------------------------------------------------
def test_what_each_role_took_adds_up_to_the_whole() -> None:
    s = whole(llm="openai")
    s.call("critic", "judge_iteration/9", "Judge.", "", error="connection refused")
    s.call("critic", "judge_iteration/9", "Judge.", "{}", seconds=9.0)
    m = moment(s)
    found = spending.by_role(merged(m.calls))
    assert sum(r.tries for r in found) == m.history.spent.calls
    assert sum(r.tokens_in + r.tokens_out for r in found) == m.history.spent.tokens
    assert sum(r.cost for r in found) == pytest.approx(m.history.spent.cost)
    critic = next(r for r in found if r.role == "critic")
    assert critic.failed == 1 and critic.tries == critic.questions + 1 and critic.longest == 9.0
    for width in (34, 60, 120):
        rows = spending.lines(merged(m.calls), width)
        assert len(rows) == len(found) + 1 and all(width_of(row) <= width for row in rows)


def test_an_outage_says_which_try_it_was_and_when_the_next_comes() -> None:
    s = whole(ended=False, llm="openai")
    s.call("slow", "plan/0.2", "What now?", "", error="connection refused")
    m = moment(s)
    later = moment(s, worker=Worker(True, "running", beat=m.now, next_try=m.now + 20.5))
    text = " ".join(plain(line) for line in banner.lines(later, 200))
    assert "gpt-5-mini gives the slow agent no answer, try 1, next in 20s: connection refused" in text
    over = moment(s, worker=Worker(True, "running", beat=m.now, next_try=m.now - 1))
    assert "next in" not in " ".join(plain(line) for line in banner.lines(over, 200))


# ---- the header ----------------------------------------------------------------------------------
def test_the_goal_is_the_sentence_of_the_task_at_any_width() -> None:
    m = moment(whole())
    for width, _ in SIZES:
        assert plain(status.goal(m, width)).startswith("Goal Make a stone pickaxe.")


# ---- screens -------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", SIZES)
async def test_the_inbox_opens_from_anywhere_and_leads_to_the_session(
    two_sessions: Path, size: tuple[int, int]
) -> None:
    async with console(two_sessions, "261121-010000-aa", size) as (app, pilot):
        await pilot.press("I")
        await until(pilot, lambda: "its worker is dead" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
        assert "gpt-5-mini" in screen_text(app)
        await pilot.press("f3")
        await until(pilot, lambda: "Waiting for you" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))


@pytest.mark.parametrize("silent", [True, False])
async def test_the_inbox_shows_what_is_here_and_says_that_the_teams_store_is_away(
    two_sessions: Path, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    """Also where somebody takes the connection and never says a word: nobody may read it as `nobody waits`."""
    pytest.importorskip("psycopg")
    monkeypatch.setattr(inbox, "STORE_PATIENCE", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1] if silent else 1
        monkeypatch.setenv("RLGPT_STORE", f"postgresql://127.0.0.1/rlgpt?port={port}&sslmode=disable")
        told: list[str] = []
        async with console(two_sessions, "261121-010000-aa") as (app, pilot):
            monkeypatch.setattr(app, "tell", lambda sentence, *_, **__: told.append(sentence))
            await pilot.press("I")
            await until(pilot, lambda: "its worker is dead" in screen_text(app))
            said = "did not answer within 1 s" if silent else "cannot be reached"
            await until(pilot, lambda: any(said in sentence for sentence in told))


@pytest.mark.parametrize("size", SIZES)
async def test_the_leaderboard_opens_on_the_task_of_the_session(two_sessions: Path, size: tuple[int, int]) -> None:
    async with console(two_sessions, None, size) as (app, pilot):
        await pilot.press("L")
        await until(pilot, lambda: "Leaderboard  make_stone_pickaxe" in screen_text(app))
        await until(pilot, lambda: "0.74, one seed" in screen_text(app))
        assert "1 session of this task without test episodes" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))


async def test_the_list_shows_forks_below_their_parents(two_sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlgpt.store import catalog

    found = catalog.summaries()
    linked = [replace(s, parent_id="261121-010000-aa", parent_seq=3) if s.id.endswith("bb") else s for s in found]
    monkeypatch.setattr(catalog, "summaries", lambda: linked)
    async with console(two_sessions) as (app, pilot):
        await pilot.press("T")
        await until(pilot, lambda: "└─ make_stone_" in screen_text(app))
        assert Preferences.load(two_sessions).sort == "forks"
        await pilot.press("T")
        await until(pilot, lambda: "└─" not in screen_text(app))


@pytest.mark.parametrize("size", SIZES)
async def test_the_tour_fits_is_shown_once_and_any_key_closes_it(two_sessions: Path, size: tuple[int, int]) -> None:
    app = ConsoleApp(two_sessions, "261121-010000-aa", tour=True)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TourScreen) and "rlgpt lets" in screen_text(app))
        text = screen_text(app)
        assert "leave; the session goes on" in text and "any key closes this" in text
        await pilot.press("3")  # a key that does something does it
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        await until(pilot, lambda: app.focused is not None and app.focused.id == "curves")
    assert Preferences.load(two_sessions).toured
    again = ConsoleApp(two_sessions, "261121-010000-aa", tour=True)
    async with again.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(again.screen, SessionScreen) and again.screen.controller.opened)
        assert "rlgpt lets" not in screen_text(again)


async def test_a_session_goes_on_being_drawn_below_the_tour(home: Path, store: Callable[..., Path]) -> None:
    story = whole()
    begun, later = story.rows[:20], story.rows[20:]
    session = write("261121-010000-aa", begun, story.texts)
    app = ConsoleApp(home, "261121-010000-aa", tour=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TourScreen))
        drawn = app.screen_stack[-2].query_one("#status", Bar)
        await until(pilot, lambda: "finished" not in line_text(drawn))
        append(session, later, {})
        await until(pilot, lambda: "finished" in line_text(drawn))
        assert isinstance(app.screen, TourScreen)


async def test_the_footer_of_a_paused_session_offers_to_go_on(home: Path, store: Callable[..., Path]) -> None:
    story = whole(ended=False)
    running = len(story.rows)
    story.event(events.Waiting("paused"))
    session = write("261121-010000-aa", story.rows[:running], story.texts)
    with Lease.acquire(session):
        async with console(home, "261121-010000-aa", (200, 60)) as (app, pilot):
            footer = app.screen.query_one(Footer)
            await until(pilot, lambda: "p pause" in line_text(footer))
            append(session, story.rows[running:], {})
            await until(pilot, lambda: "p go on" in line_text(footer))


def line_text(bar: Bar) -> str:
    return bar.render_line(0).text


async def test_the_list_says_at_80_columns_who_waits_and_what_is_filtered(home: Path) -> None:
    waits: dict[str, Any] = {"status": "waiting", "waiting_for": "approval of plan revision 1", "alive": True}
    found = [summary(f"s{number}", **waits) for number in range(9)]
    async with console(home, None, (80, 24)) as (app, _):
        screen = app.screen
        assert isinstance(screen, SessionsScreen)
        screen._take(found, 0, frozenset())
        assert "9 sessions wait for you" in plain(screen._title(78))
        screen.rows.set_filter("diamond")
        assert "/diamond" in plain(screen._title(78)) and "9 sessions wait for you" in plain(screen._title(78))


def test_only_orders_whose_column_is_seen_are_offered_and_a_damaged_session_has_no_age() -> None:
    assert set(sessions.sorts(60)) < set(sessions.sorts(200)) == set(sessions.SORTS)
    (entry,) = sessions.entries([Summary("a", fault="x" * 300)], 100, 1e9)
    row, told = (plain(each) for each in entry.lines)
    assert row.count("–") >= 2 and "$0.00" not in row and told.endswith("…")


def test_the_tour_names_only_keys_that_are_in_the_table() -> None:
    for width in (50, 72):
        assert all(width_of(line) <= width for line in tour.lines(width, {}))
    whole_ = "".join(plain(line) for line in tour.lines(69, {}))
    assert "…" not in whole_ and all(text in whole_ for _, _, text in tour.PANES)
    assert "f9" in "".join(plain(line) for line in tour.lines(72, {"app.help": "f9"}))


async def test_help_explains_the_words_of_the_pane_it_is_asked_in(two_sessions: Path) -> None:
    async with console(two_sessions, "261121-010000-aa", (120, 60)) as (app, pilot):
        await pilot.press("4", "question_mark")
        await until(pilot, lambda: "Words in the focused pane" in screen_text(app))
        meaning = next(term.meaning for term in glossary.terms() if term.word == "best so far")
        await until(pilot, lambda: " ".join(meaning.split()[:4]) in screen_text(app))


PRODUCT_WORDS = (
    "session", "iteration", "attempt", "sub-action", "coded action", "primitive", "decision", "env step", "view",
    "world", "action host", "verdict", "override", "rule-based model",
)  # fmt: skip


@pytest.mark.parametrize("word", PRODUCT_WORDS)
def test_every_word_of_the_product_is_explained(word: str) -> None:
    assert [term for term in glossary.terms_in(f"The {word}s of today") if term.word.casefold() == word]


async def test_several_seeds_are_started_from_the_form(two_sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    def answer(app: Any, question: str, arguments: Any = None, *, then: Any = None, **_: Any) -> None:
        if question == "tasks":
            app.call_later(then, {"tasks": [{"id": "dig", "prompt": "Dig.", "horizon": 9}]})
        if question == "create":
            made.append(arguments["settings"])
            app.call_later(then, {"id": f"id-{len(made)}", "folder": str(two_sessions)})

    monkeypatch.setattr(launch, "ask", answer)
    monkeypatch.setattr(children, "start_worker", lambda folder: 1)
    async with console(two_sessions) as (app, pilot):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewScreen) and "Dig." in screen_text(app))
        for name, value in (("seed", "7"), ("seeds", "3"), ("name", "trio")):
            app.screen.query_one(f"#{name}").value = value  # type: ignore[attr-defined]
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not isinstance(app.screen, NewScreen))
    assert [(s["seed"], s["name"]) for s in made] == [(7, "trio"), (8, "trio-2"), (9, "trio-3")]


def ask_for_one_task(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the form of a session asks a child process; only the question for the tasks is answered."""
    asked: list[str] = []

    def answer(app: Any, question: str, arguments: Any = None, *, then: Any = None, **_: Any) -> None:
        asked.append(question)
        if question == "tasks":
            app.call_later(then, {"tasks": [{"id": "dig", "prompt": "Dig.", "horizon": 9}]})

    monkeypatch.setattr(launch, "ask", answer)
    return asked


async def open_form(app: ConsoleApp, pilot: Pilot[int]) -> None:
    await pilot.press("n")
    await until(pilot, lambda: isinstance(app.screen, NewScreen) and "Dig." in screen_text(app))


@pytest.mark.parametrize("key", ["escape", "ctrl+q"])
async def test_every_key_that_leaves_a_form_asks_about_what_was_filled_in(
    two_sessions: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    ask_for_one_task(monkeypatch)
    async with console(two_sessions) as (app, pilot):
        await open_form(app, pilot)
        app.screen.query_one("#name").value = "mine"  # type: ignore[attr-defined]
        await pilot.press(key)
        await until(pilot, lambda: "What you filled in was not started." in screen_text(app))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewScreen))
        await pilot.press(key, "y")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await open_form(app, pilot)
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))


@pytest.mark.parametrize("wrong", ["0", "51", "two", "1.5"])
async def test_a_wrong_number_of_sessions_starts_none(
    two_sessions: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    asked = ask_for_one_task(monkeypatch)
    async with console(two_sessions) as (app, pilot):
        await open_form(app, pilot)
        app.screen.query_one("#seeds").value = wrong  # type: ignore[attr-defined]
        await pilot.press("ctrl+s")
        await pilot.pause()
        fault = str(app.screen.query_one("#fault").render())
    assert "create" not in asked and ("Sessions must be a whole number" in fault or "At most 50" in fault)


@pytest.mark.parametrize("typed", ["inf", "nan", "-1", "1e300", pytest.param("9" * 400, id="400 digits")])
async def test_numbers_that_nothing_can_be_counted_with_end_no_form(
    two_sessions: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    ask_for_one_task(monkeypatch)
    async with console(two_sessions) as (app, pilot):
        await open_form(app, pilot)
        app.screen.query_one("#llm").value = "openai"  # type: ignore[attr-defined]
        for name in ("iterations", "seeds", "cost_", "tokens"):
            app.screen.query_one(f"#{name}").value = typed  # type: ignore[attr-defined]
            await pilot.pause()
        assert "tokens" in str(app.screen.query_one("#cost").render())


def test_the_leaderboard_names_an_arm_first_and_nothing_that_is_not_set() -> None:
    found = [
        ranked("a", 40, 0, settings={"method": {"label": "code", "reward": None, "arm": "code"}}),
        ranked("b", 50, 0, settings={"method": {"label": "rlgpt", "reward": "success", "arm": "rlgpt"}}),
    ]
    labels = [row.label for row in leaderboard.rows(found, "dig")]
    assert labels == [
        "rule-based model, rlgpt, method.arm=rlgpt, method.reward=success", "rule-based model, code, method.arm=code",
    ]  # fmt: skip


@pytest.mark.parametrize(("silent", "word"), [(400, "planning"), (700, "hung")])
async def test_the_list_and_a_session_call_a_slow_call_of_a_model_alike(home: Path, silent: int, word: str) -> None:
    story = Story(llm="openai")
    story.open()
    story.rows[0][1]["settings"]["llm"]["timeout"] = 300.0
    story.event(events.Phase(name="Plan", number=0))
    session = write("261121-010000-aa", story.rows, story.texts)
    with Lease.acquire(session):
        (session / progress.NAME).write_text(json.dumps({"at": NOW - silent, "env_steps": 0, "what": "Plan"}))
        for opened in (None, session.name):
            async with console(home, opened, (120, 40)) as (app, pilot):
                await until(pilot, lambda app=app: word in screen_text(app))


async def test_a_store_that_cannot_be_listed_is_told_once_at_a_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def read(_: AllSessions) -> list[Summary]:
        raise BadPlace("the sessions cannot be listed: Stale file handle")

    monkeypatch.setattr(AllSessions, "read", read)
    monkeypatch.setattr("rlgpt.console.screens.sessions.POLL", 0.02)
    monkeypatch.setattr(ConsoleApp, "tell", lambda app, sentence, *_, **__: told.append(sentence))
    async with ConsoleApp(home).run_test() as pilot:
        await until(pilot, lambda: told)
        await pilot.pause(0.3)
    assert len(told) <= 2, "once as the screen is made, once as it is shown"
