"""The selected sub-action leads the other panes; the funnel leads to episodes, an episode to its frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from driving import console, screen_text, until
from test_insight import told

from rlgpt.console.app import ConsoleApp
from rlgpt.console.panes.code import CodePane
from rlgpt.console.panes.episodes import EpisodesPane
from rlgpt.console.panes.list_pane import ListPane
from rlgpt.console.panes.plan import PlanPane
from rlgpt.console.panes.world import WorldPane
from rlgpt.console.screens.session import SessionScreen

SESSION = "261121-010000-aa"


@pytest.fixture
def place(home: Path, store: Callable[..., Path]) -> Path:
    s = told()
    s.film("dev", 50, 2, 0, 1, 2)
    s.film("dev", 50, 4, 0)
    store(SESSION, s)
    return home


def pane(app: ConsoleApp, name: str) -> ListPane:
    found = app.screen.query_one(f"#{name}")
    assert isinstance(found, ListPane)
    return found


async def test_the_funnel_leads_to_the_episodes_lost_there_and_an_episode_to_its_frames(place: Path) -> None:
    async with console(place, SESSION, (120, 40)) as (app, pilot):
        await pilot.press("9")
        await until(pilot, lambda: "Most are lost at place_table" in screen_text(app))
        await pilot.press("j", "enter")
        episodes = app.screen.query_one(EpisodesPane)
        await until(pilot, lambda: episodes.has_focus and episodes.item == "place_table")
        text = screen_text(app)
        assert "at place_table" in text and "zombie" in text
        failing = [e for e in episodes.entries if str(e.key).startswith("episode:dev:50")]
        assert [e.key for e in failing] == ["episode:dev:50:2", "episode:dev:50:3"]
        episodes.select("episode:dev:50:2")
        await pilot.press("enter")
        world = app.screen.query_one(WorldPane)
        await until(pilot, lambda: world.has_focus and "frame 3 of 3" in screen_text(app))
        assert "✗ zombie at place_table" in screen_text(app)


async def test_the_episode_that_was_chosen_is_shown_also_where_the_world_was_hidden_until_then(
    home: Path, store: Callable[..., Path]
) -> None:
    """The selected sub-action, of which the world pane has not heard, has another episode that can be watched."""
    s = told()
    s.film("dev", 50, 2, 0, 1, 2)
    s.film("dev", 50, 3, 0, 1, 2, 3)
    store(SESSION, s)
    async with console(home, SESSION, (120, 40)) as (app, pilot):
        app.screen.query_one(PlanPane).select("item:4:place_table")
        await pilot.press("E")
        episodes = app.screen.query_one(EpisodesPane)
        await until(pilot, lambda: episodes.has_focus and episodes.item == "place_table")
        assert [str(e.key) for e in episodes.entries[1:3]] == ["episode:dev:50:3", "episode:dev:50:2"]
        episodes.select("episode:dev:50:2")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.query_one(WorldPane).has_focus and "frame 3 of 3" in screen_text(app))
        assert "episode 2" in screen_text(app)


async def test_an_episode_without_frames_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda _, sentence, *_more, **_options: said.append(sentence))
    async with console(place, SESSION, (120, 40)) as (app, pilot):
        await pilot.press("E")
        episodes = app.screen.query_one(EpisodesPane)
        await until(pilot, lambda: episodes.has_focus)
        episodes.select("episode:dev:50:3")
        await pilot.press("enter")
        await until(pilot, lambda: said and "no frames of this episode are kept" in said[-1])


async def test_esc_widens_the_episodes_before_it_leaves_the_session(place: Path) -> None:
    async with console(place, SESSION, (120, 40)) as (app, pilot):
        await pilot.press("9", "j", "enter")
        episodes = app.screen.query_one(EpisodesPane)
        await until(pilot, lambda: episodes.item == "place_table")
        await pilot.press("escape")
        await until(pilot, lambda: episodes.item == "")
        assert isinstance(app.screen, SessionScreen)


async def test_the_cursor_of_the_plan_leads_code_verdicts_funnel_and_options(place: Path) -> None:
    async with console(place, SESSION, (200, 60)) as (app, pilot):
        plan = app.screen.query_one(PlanPane)
        code = app.screen.query_one(CodePane)
        await pilot.press("9", "1")
        for name in ("collect_wood", "make_wood_pickaxe"):
            plan.select(f"item:4:{name}")
            await until(pilot, lambda name=name: code.shown is not None and code.shown.sub_action == name)
            funnel = pane(app, "funnel").current
            assert funnel is not None and funnel.fields["item"] == name
        assert plan.item == "make_wood_pickaxe", "the selected pane moved itself"


async def test_the_cursor_of_the_plan_follows_the_work_until_the_operator_moves_it(place: Path) -> None:
    async with console(place, SESSION, (120, 40)) as (app, pilot):
        plan = app.screen.query_one(PlanPane)
        screen = app.screen
        assert isinstance(screen, SessionScreen) and screen.controller.moment is not None
        trials = [
            (row["seq"], row["payload"]["item"])
            for _, row in told().rows
            if row.get("kind") == "phase" and row["payload"].get("name") == "Trial"
        ]
        for seq, item in (trials[0], trials[-1]):
            screen.controller.go_to(seq)
            await until(pilot, lambda item=item: plan.item == item)
        await pilot.press("1", "k")
        own = plan.item
        screen.controller.go_to(trials[-1][0] - 1)
        screen.controller.go_to(trials[-1][0])
        await pilot.pause(0.3)
        assert plan.item == own != trials[-1][1]


async def test_a_pane_that_is_shown_later_knows_the_selected_sub_action(place: Path) -> None:
    async with console(place, SESSION, (120, 40)) as (app, pilot):
        plan = app.screen.query_one(PlanPane)
        plan.select("item:4:place_table")
        await pilot.pause(0.3)
        await pilot.press("9")
        await until(pilot, lambda: pane(app, "funnel").current is not None)
        current = pane(app, "funnel").current
        assert current is not None and current.fields["item"] == "place_table"


@pytest.mark.parametrize("key", ["9", "E", "W", "U"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_the_new_panes_draw_at_every_size_and_at_every_cursor(
    place: Path, key: str, size: tuple[int, int]
) -> None:
    async with console(place, SESSION, size) as (app, pilot):
        await pilot.press(key)
        for moved in ("H", "]", "}", "}", "l"):
            await pilot.press(moved)
            await pilot.pause()
        text = screen_text(app)
        assert all(len(line) <= size[0] for line in text.splitlines())
        assert isinstance(app.focused, ListPane) and app.focused.entries
