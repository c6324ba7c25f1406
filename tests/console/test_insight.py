"""Funnel, episodes, why and options: what they say of a session, at its end and at any row before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from moments import moment
from sample_sessions import whole
from story import Story

from rlgpt.console.view import code, episodes, funnel, options, plan, why, world
from rlgpt.console.view.episodes import TASK, Place
from rlgpt.console.view.sessions import newest_result
from rlgpt.console.view.text import Entry, plain, width_of
from rlgpt.console.view.world import END, Cursor
from rlgpt.store import events
from rlgpt.store.catalog import summarised
from rlgpt.store.films import Frame

ORDER = ("collect_wood", "place_table", "make_wood_pickaxe", "collect_stone")


def said(entries: list[Entry]) -> str:
    return "\n".join(plain(line) for entry in entries for line in entry.lines)


def told(recorded: bool = True) -> Story:
    """A session whose last development evaluation, number 50, has six episodes: two were lost at the table (a zombie,
    the step limit), one at the pickaxe, one behind it all; two succeeded."""
    s = whole(ended=False)
    s.evaluate(1, 4, 50, 2, episodes=6)
    s.rows[-2][1]["funnel"] = {"collect_wood": 6, "place_table": 4, "make_wood_pickaxe": 3, "collect_stone": 3}
    reached: list[Any] = [ORDER, ORDER, ORDER[:1], ORDER[:1], ORDER[:2], ORDER]
    for index, names in enumerate(reached):
        won = index < 2
        s.episode(
            "dev", 50, index, list(names) if recorded else None, success=won,
            end="success" if won else "time" if index == 3 else "death",
            cause="zombie" if index in (2, 4, 5) else "",
        )  # fmt: skip
    return s


# ---- the funnel ------------------------------------------------------------------------------------
def test_the_funnel_counts_where_episodes_are_lost_and_what_ended_them() -> None:
    found = funnel.funnel(moment(told()))
    assert [(step.name, step.dev) for step in found.steps] == [
        ("collect_wood", (6, 6)), ("place_table", (4, 6)), ("make_wood_pickaxe", (3, 6)), ("collect_stone", (3, 6)),
        (TASK, (2, 6)),
    ]  # fmt: skip
    assert [(step.lost, dict(step.causes)) for step in found.steps] == [
        (0, {}), (2, {"zombie": 1, "step limit": 1}), (1, {"zombie": 1}), (0, {}), (1, {"zombie": 1}),
    ]  # fmt: skip
    assert found.recorded and found.worst is not None and found.worst.name == "place_table"
    assert found.before is not None and found.steps[0].before == found.before.shares["collect_wood"]
    text = said(funnel.entries(found, 80))
    assert "Most are lost at place_table: 2 episodes (zombie 1, step limit 1)" in text and "▼ 2 lost" in text


def test_the_funnel_tells_a_part_of_a_long_task_from_the_whole_that_is_tested() -> None:
    s = told()
    assert "in dev" not in said(funnel.entries(funnel.funnel(moment(s)), 80))
    whole_task = s.rows[0][1]["task"]
    ordered = [{"task": name, "goal": "g", "reason": "r"} for name in ("first_part", whole_task)]
    s.add("task_plan", revision=1, author="planner", sub_tasks=ordered, reason="")
    text = said(funnel.entries(funnel.funnel(moment(s)), 120))
    assert "dev of iteration 1 of first_part (" in text and "the task, in dev first_part" in text
    history = moment(s).history
    assert (history.part(0), history.part(1), history.part(2)) == ("first_part", "", "")
    told_of = summarised("x", history)
    assert (told_of.dev_part, newest_result(told_of)[1]) == (1, "dev of part 1")


def test_a_session_that_did_not_record_who_reached_what_has_the_difference_of_two_bars() -> None:
    found = funnel.funnel(moment(told(recorded=False)))
    assert not found.recorded and [step.lost for step in found.steps] == [0, 2, 1, 0, 1]
    assert "did not record" in said(funnel.entries(found, 80))


def test_a_task_that_is_done_before_a_step_is_no_loss_of_the_step() -> None:
    s = told()
    evaluation = [row for table, row in s.rows if table == "evaluation"][-1]
    evaluation["funnel"] = {"collect_wood": 6, "place_table": 4, "make_wood_pickaxe": 3, "collect_stone": 0}
    found = funnel.funnel(moment(s))
    assert [step.without for step in found.steps] == [0, 0, 0, 2, 0]
    assert "the task was done without it in 2" in said(funnel.entries(found, 80))


def test_of_a_score_what_comes_later_does_not_stand_for_what_was_not_reached() -> None:
    assert funnel.went_on({"eat_plant": funnel.Share(5, 20), "collect_drink": funnel.Share(19, 20)}, "eat_plant") == 5
    assert funnel.went_on({"eat_plant": funnel.Share(5, 20), TASK: funnel.Share(19, 20)}, "eat_plant") == 19


def test_a_sub_action_of_a_score_is_marked_by_its_own_share() -> None:
    shares = {"collect_wood": funnel.Share(0, 20), "place_table": funnel.Share(20, 20)}
    acting = moment(told()).history.plan
    assert acting is not None
    item = acting.item("place_table")
    assert item is not None and acting.items.index(item) > 0
    assert plan._works(acting, item, shares)[0] == "✓"
    assert plan._works(acting, item, shares | {TASK: funnel.Share(0, 20)})[0] == "✗"
    scored = funnel.Funnel(funnel.Measured(0, "full", (1,), "", shares), None, None, (), True)
    assert scored.scored
    step = funnel.Step("collect_wood", "rl", shares["collect_wood"], None, None, 20)
    assert "first missing in 20" in said([funnel._entry(step, 1, True, True, 80, "")])


def test_of_a_score_without_records_nobody_claims_what_was_missing_first() -> None:
    s = told(recorded=False)
    session = s.rows[0][1]
    session["task_info"] = session["task_info"] | {"kind": "score", "milestones": ["collect_wood"]}
    found = funnel.funnel(moment(s))
    assert found.scored and not found.recorded and not any(step.lost for step in found.steps) and found.worst is None
    text = said(funnel.entries(found, 80))
    assert "first missing" not in text and "The first that" not in text and "is not known" in text


def test_the_funnel_says_in_how_many_lost_worlds_there_is_nothing_of_what_is_sought() -> None:
    s = told()
    evaluation = [row for row in s.rows if "funnel" in row[1]][-1][1]
    evaluation["failures"] = {"lost_worlds": {"no diamond anywhere": 3, "no iron anywhere": 1}}
    found = funnel.funnel(moment(s))
    assert funnel.tree(found)["lost_worlds"] == {"no diamond anywhere": 3, "no iron anywhere": 1}
    assert "Worlds of lost episodes: no diamond anywhere in 3, no iron anywhere in 1" in said(funnel.entries(found, 80))
    assert "Worlds of" not in said(funnel.entries(funnel.funnel(moment(told())), 80))


def test_the_funnel_of_a_moment_knows_nothing_of_later_rows() -> None:
    s = told()
    evaluated = [row["seq"] for table, row in s.rows if table == "evaluation"]
    now = funnel.tree(funnel.funnel(moment(s, evaluated[-1] - 1)))
    s.rows = [(t, r) for t, r in s.rows if r["seq"] < evaluated[-1]]
    assert now == funnel.tree(funnel.funnel(moment(s))) != funnel.tree(funnel.funnel(moment(told())))


@pytest.mark.parametrize("width", [30, 38, 60, 90])
def test_options_can_be_told_apart_in_a_pane_of_any_width(width: int) -> None:
    tables = options.tables(moment(told()))
    lines = [plain(each) for entry in options.entries(tables, width) for each in entry.lines]
    for name in (use.name for table in tables for use in table.uses if use.name != options.PRIMITIVE):
        assert any(name in text for text in lines), f"{name} is cut"
    assert all(any(table.title in text for text in lines) for table in tables)


def test_parts_of_the_plan_can_be_told_apart_in_a_narrow_pane() -> None:
    lines = [plain(each) for entry in plan.entries(moment(told()), 34) for each in entry.lines]
    assert all(any(name in text for text in lines) for name in ("collect_wood", "place_table", "collect_stone"))


def test_a_task_whose_result_is_a_score_has_no_bar_of_the_task() -> None:
    s = told()
    s.rows[0][1]["task_info"] = {"kind": "score", "milestones": ["a"]}
    assert TASK not in [step.name for step in funnel.funnel(moment(s)).steps]


# ---- episodes --------------------------------------------------------------------------------------
def test_failing_episodes_come_first_and_those_that_can_be_watched_before_the_others() -> None:
    found = episodes.episodes(moment(told()))
    assert [e.success for e in found] == sorted(e.success for e in found)
    failing = [e.film is not None for e in found if not e.success]
    assert failing == sorted(failing, reverse=True) and any(failing)
    assert all(not e.success for e in episodes.episodes(moment(told()), failed=True))


def test_an_episode_is_lost_at_the_first_sub_action_of_its_plan_that_it_never_reached() -> None:
    mine = [e for e in episodes.episodes(moment(told())) if e.place.owner == 50 and e.place.source == "dev"]
    lost = {e.place.episode: e.lost for e in mine}
    assert lost == {0: "", 1: "", 2: "place_table", 3: "place_table", 4: "make_wood_pickaxe", 5: TASK}
    assert {e.place.episode: e.ended for e in mine}[3] == "step limit"


def test_what_was_lost_at_a_sub_action_has_no_trial_that_was_won() -> None:
    every = episodes.episodes(moment(told()))
    item = next(e.lost for e in every if e.place.source == "trial" and e.success)
    at_it = episodes.lost_there(every, item)
    assert not any(e.success for e in at_it)
    assert {e.place for e in at_it} < {e.place for e in episodes.chosen(every, item)}
    assert episodes.lost_there(every, "") == every


def test_that_no_episode_failed_is_not_said_as_if_there_were_none() -> None:
    assert plain(episodes.entries([], "", 80, ended=True, played=155)[0].lines[0]) == "None of 155 episodes failed."


def test_trials_are_episodes_of_the_code_that_was_tried() -> None:
    found = [e for e in episodes.episodes(moment(told())) if e.place.source == "trial"]
    rows = [row for table, row in told().rows if table == "trial"]
    assert len(found) == sum(len(row["trials"]) for row in rows)
    first = next(e for e in found if e.place.owner == 1)
    assert (first.lost, first.version) == (rows[0]["sub_action"], rows[0]["version"])


def test_a_training_episode_that_a_resume_went_back_behind_is_gone() -> None:
    s = told()
    run = max(moment(s).history.runs)
    s.episode("train", run, 7, None)
    at = s.rows[-1][1]["seq"]
    assert any(e.place == Place("train", run, 7) for e in episodes.episodes(moment(s)))
    s.event(events.Resumed(at - 1, run=run, update=1, env_steps=2048))
    assert not any(e.place == Place("train", run, 7) for e in episodes.episodes(moment(s)))


def test_the_list_of_a_long_session_says_what_it_leaves_out() -> None:
    s = told()
    for index in range(100, 100 + episodes.MOST):
        s.episode("dev", 50, index, list(ORDER))
    found = episodes.episodes(moment(s))
    shown = episodes.entries(found, "", 80)
    assert len(shown) == episodes.MOST + 2 and f"{len(found) - episodes.MOST} more" in plain(shown[-1].lines[0])


# ---- why -------------------------------------------------------------------------------------------
def test_a_return_that_rises_is_not_flat_and_noise_is() -> None:
    noise = np.random.default_rng(1).normal(0, 1, 200)
    assert why.flat_for(np.arange(40) + noise[:40]) == 0
    assert why.flat_for(noise) == 200
    assert why.flat_for(np.concatenate([np.arange(50.0), 50 + noise[:30] / 100])) == 20


def test_every_finding_has_a_number_and_every_bad_one_a_key_and_a_command() -> None:
    found = {f.test: f for f in why.findings(moment(whole(ended=False)))}
    assert set(found) == {"flat_return", "entropy", "kl", "option_ends", "code_alone", "primitives"}
    for finding in found.values():
        assert finding.bad is None or finding.value is not None
        assert bool(finding.bad) == bool(finding.action) and (not finding.action or finding.action in why.COMMANDS)


def test_a_run_that_is_over_cannot_be_ended() -> None:
    for ended, key in ((False, "session.stop_training"), (True, "session.advise")):
        s = whole(ended=False)
        for table, row in s.rows:
            if table == "metric":
                row["return_mean"] = 1.0
        if ended:
            s.event(events.TrainingEnded(run=3, state="finished", reason="", env_steps=1, decisions=1, updates=1))
        (flat,) = (f for f in why.findings(moment(s)) if f.test == "flat_return")
        assert flat.bad and flat.action == key


def test_nothing_is_said_of_ppo_before_its_first_run() -> None:
    s = Story()
    s.open()
    assert why.findings(moment(s)) == [] and "No PPO run yet" in said(why.entries([], {}, 60))
    assert options.tables(moment(s)) == [] and funnel.funnel(moment(s)).steps == ()


@pytest.mark.parametrize(
    ("column", "value", "test", "bad"),
    [
        ("entropy", 0.5, "entropy", False),
        ("kl", 0.0, "kl", True), ("kl", 0.01, "kl", False),
        ("option_usage", {"primitive": 1, "collect_wood": 999}, "primitives", True),
        ("option_usage", {"primitive": 1000, "collect_wood": 1}, "primitives", True),
        ("option_usage", {"primitive": 500, "collect_wood": 500}, "primitives", False),
        ("end_reasons", {"collect_wood": {"cap": 9, "return": 1}}, "option_ends", True),
        ("end_reasons", {"collect_wood": {"cap": 1, "return": 9}}, "option_ends", False),
        (
            "end_reasons", {"collect_wood": {"cap": 1, "return": 9}, "follow_plan": {"cap": 90}}, "option_ends", False
        ),
    ],
)  # fmt: skip
def test_each_cause_is_found_where_it_is_and_only_there(column: str, value: Any, test: str, bad: bool) -> None:
    s = whole(ended=False)
    for table, row in s.rows:
        if table == "metric":
            row[column] = value
    assert next(f for f in why.findings(moment(s)) if f.test == test).bad is bad


def test_a_share_of_calls_or_decisions_says_over_what_it_is_taken() -> None:
    s = whole(ended=False)
    for table, row in s.rows:
        if table == "metric":
            row["end_reasons"] = {"collect_wood": {"cap": 1, "return": 9}, "follow_plan": {"cap": 90}}
            row["option_usage"] = {"primitive": 1, "collect_wood": 3}
    found = {finding.test: finding for finding in why.findings(moment(s))}
    assert found["option_ends"].shown == "90%"  # what the title says: that they end by themselves
    assert found["option_ends"].sentence.startswith("10% of the calls of the last 10 updates were cut off")
    assert found["option_ends"].sentence.endswith("follow_plan is not counted.")
    assert found["primitives"].sentence == "25% of the decisions of the last 10 updates are primitives."


@pytest.mark.parametrize(("first", "bad"), [(0.5, True), (0.01, False)])
def test_a_policy_that_began_near_one_action_has_not_collapsed(first: float, bad: bool) -> None:
    s = whole(ended=False)
    metrics = [row for table, row in s.rows if table == "metric"]
    newest = [row for row in metrics if row["run"] == metrics[-1]["run"]]
    for index, row in enumerate(newest):
        row["entropy"] = first if index < len(newest) - why.RECENT else 0.01
    (found,) = (f for f in why.findings(moment(s)) if f.test == "entropy")
    assert found.bad is bad and ("as it began" in found.sentence) is not bad


def test_a_run_that_was_given_no_primitives_is_not_blamed_for_using_none() -> None:
    s = whole(ended=False)
    for table, row in s.rows:
        if table == "rl_config":
            row["config"] = {**row["config"], "primitives": []}
        if table == "metric":
            row["option_usage"] = {"follow_plan": 90, "collect_wood": 9}
    (found,) = (f for f in why.findings(moment(s)) if f.test == "primitives")
    assert found.bad is None and "given no primitives" in found.sentence


def test_a_policy_ahead_of_its_code_is_not_said_not_to_improve() -> None:
    ahead = why.Finding("code_alone", "PPO is better than the code alone", False, 0.1, "+0.10", "So it is.")
    flat = why.Finding("flat_return", "return rises", True, 80.0, "flat for 80", "Flat.", "session.advise", "Help.")
    assert said(why.entries([ahead, flat], {}, 80)).startswith("PPO is better than the code alone; 1 of 2 tests")
    assert said(why.entries([flat], {}, 80)).startswith("1 of 1 tests find why PPO does not improve")


def test_a_comparison_that_is_not_decided_is_no_cause() -> None:
    s = whole(ended=False)
    for table, row in s.rows:
        if table == "verdict" and not row["sub_action"]:
            row["better"] = "undecided"
    found = [f for f in why.findings(moment(s)) if f.test == "code_alone"]
    assert [(f.bad, f.action, f.value is not None) for f in found] == [(None, "", True)]
    flat = why.Finding("flat_return", "return rises", True, 80.0, "flat for 80", "Flat.", "session.advise", "Help.")
    assert said(why.entries([*found, flat], {}, 80)).startswith("1 of 2 tests find what may hold PPO back")


# ---- options ---------------------------------------------------------------------------------------
def test_the_option_table_sums_the_rows_of_the_newest_run() -> None:
    s = whole(ended=False)
    metrics = [row for table, row in s.rows if table == "metric"]
    for row in metrics:
        row["option_steps"] = {"primitive": 100, "collect_wood": 300}
    training = options.tables(moment(s))[0]
    mine = [row for row in metrics if row["run"] == max(row["run"] for row in metrics)]
    for use in training.uses:
        assert use.uses == sum(row["option_usage"].get(use.name, 0) for row in mine)
    wood = next(use for use in training.uses if use.name == "collect_wood")
    assert training.share(wood) == 0.75 and wood.env_steps == 300 * len(mine)
    assert wood.mean_steps == pytest.approx(wood.env_steps / wood.uses)
    summed = {reason: sum(r["end_reasons"]["collect_wood"][reason] for r in mine) for reason in wood.ends}
    assert dict(wood.ends) == summed


def test_the_titles_stand_over_their_columns_where_the_name_of_the_table_is_long() -> None:
    use = options.Use("collect_wood", 12, 34, {}, 5)
    table = options.Table("1,000 dev episodes of iteration 0", (use,))
    for width in (45, 60, 100):
        title, row = options.entries([table], width)
        assert width_of(title.lines[-1]) == width_of(row.lines[-1])


# ---- the plan, the code and the frames ------------------------------------------------------------------
def test_the_plan_shows_how_many_episodes_reached_each_sub_action() -> None:
    text = said(plan.entries(moment(told()), 90))
    assert "reached 4/6" in text and "reached 6/6" in text
    ticks = {e.fields["item"]: plain(e.lines[0])[1] for e in plan.entries(moment(told()), 90) if "item" in e.fields}
    assert ticks["collect_wood"] == "✓" and ticks["place_table"] == "◐"


def test_a_session_that_has_ended_trains_no_more() -> None:
    s = whole(ended=False)
    s.train(1, 4, 9, updates=1, end="")
    s.event(events.Ended("stopped", "stopped by the operator"))
    assert "▶" not in said(plan.entries(moment(s), 90))


def test_the_strip_of_coded_actions_shows_the_chosen_one_where_not_all_fit() -> None:
    h = moment(whole()).history
    for name in {attempt.sub_action for attempt in h.attempts}:
        shown, _ = code.chosen(h, code.Choice(name))
        for width in (30, 40, 80):
            (line,) = code.tabs(h, shown, width)
            assert name in plain(line) and width_of(line) <= width


def test_a_frame_says_what_was_done_by_whom_and_what_it_changed() -> None:
    s = told()
    s.film("dev", 50, 2, 0, 1, 4, primitive="move_left", inner="collect_wood", decision="follow_plan")
    m = moment(s)
    text = said(world.entries(m, Cursor(m.films[-1].seq, END), 100, 40))
    assert "✗ zombie at place_table" in text and "move_left  by follow_plan › collect_wood" in text
    assert "the last of 3 env steps" in text and "reward +3" in text


def test_what_a_world_counts_is_told_as_a_change() -> None:
    m = moment(told())
    bodies = [frame.body for film in m.films for frame in m.film(film.seq)]
    module = m.history.frame_module
    different = next(b for b in bodies if b[8:24] != bodies[0][8:24])
    found = dict(world.changed(module, bodies[0], different))
    assert found and all(by for by in found.values())


def test_a_text_is_drawn_as_its_world_wrote_it() -> None:
    """As gymnasium's renderers do: a map whose blanks are places, and the agent's in a colour of the terminal."""
    text = "  (Right)\n#     #\n#  \x1b[41m@\x1b[0m  #\n\n| a wall of more than twenty cells |\n\x1b[2J\n"
    lines = world._body("", Frame(0, "text", "", text.encode()), 20, 10)
    assert [plain(line) for line in lines] == [
        "  (Right)", "#     #", "#  @  #", "", "| a wall of more tha", "n twenty cells |", "␛[2J",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [24, 36, 60, 80, 120, 200])
def test_no_line_is_wider_than_its_pane(width: int) -> None:
    m = moment(told())
    shown = [
        *funnel.entries(funnel.funnel(m), width), *episodes.entries(episodes.episodes(m), "", width),
        *episodes.entries(episodes.episodes(m), "place_table", width),
        *why.entries(why.findings(m), dict.fromkeys(why.COMMANDS, "T"), width),
        *options.entries(options.tables(m), width),
    ]  # fmt: skip
    assert [plain(line) for entry in shown for line in entry.lines if width_of(line) > width] == []
