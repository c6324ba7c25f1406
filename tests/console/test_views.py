"""What the panes say about a session, at its end and at any moment before."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from moments import moment
from sample_sessions import whole
from story import Story

from rlgpt.console.commands import record
from rlgpt.console.view import (
    banner,
    code,
    compare,
    curves,
    diff,
    logs,
    news,
    plan,
    sessions,
    status,
    syntax,
    system,
    timeline,
    verdicts,
    world,
)
from rlgpt.console.view.axis import axis_of
from rlgpt.console.view.estimate import DEPTH, INNER, estimate, sentence
from rlgpt.console.view.metrics import MetricTable
from rlgpt.console.view.moment import Moment, Worker
from rlgpt.console.view.numbers import count, decimal, duration, rate, size
from rlgpt.console.view.text import Entry, Line, plain
from rlgpt.console.view.words import decision_words, state_of
from rlgpt.store import events
from rlgpt.store.intervals import wilson
from rlgpt.store.settings import LoopSettings


def said(entries: list[Entry]) -> str:
    return "\n".join(plain(line) for entry in entries for line in entry.lines)


def text_of(lines: list[Line]) -> str:
    return "\n".join(plain(line) for line in lines)


def test_the_plan_shows_mode_score_pin_and_who_changed_what() -> None:
    text = said(plan.entries(moment(whole(ended=False)), 90))
    assert "Plan 4 · active · by operator · run by policy" in text
    assert "v2 5/5" in text
    assert "now rl, pinned (by operator)" in text
    assert "⚑" in text


def test_commands_stand_with_their_state_and_reason() -> None:
    text = said(plan.entries(moment(whole(ended=False)), 90))
    assert "applied  collect_stone: mode rl" in text
    assert "refused" in text and "the edit saw revision 3" in text


def test_a_waiting_plan_stands_below_the_one_in_force() -> None:
    s = whole(ended=False)
    s.plan(1, 5, waiting=True, drop=("place_table",))
    s.event(events.Waiting("approval of plan revision 5"))
    text = said(plan.entries(moment(s), 90))
    assert text.index("Plan 4 ") < text.index("Plan 5 ")
    assert "waits for approval" in text and "place_table  removed" in text
    assert "Plan 5 waits for you" in text_of(banner.lines(moment(s), 90))


def test_a_queued_command_is_shown_before_any_worker_saw_it() -> None:
    queued = [{"id": "q", "kind": "pause", "author": "ada@lab", "payload": {}, "at": 0.0}]
    assert "queued   pause" in said(plan.entries(moment(whole(ended=False), queued=queued), 90))


def test_the_rule_based_model_is_named_and_never_called_an_llm() -> None:
    m = moment(whole())
    shown = plain(status.title(m, 120)) + said(logs.call_entries(m, 100)) + said(verdicts.entries(m, 100))
    assert "rule-based model" in shown
    assert "LLM" not in shown


def test_a_language_model_is_named_with_its_cost() -> None:
    m = moment(whole(llm="openai"))
    assert "gpt-5-mini" in plain(status.title(m, 120))
    assert "calls to the LLM" in said(logs.call_entries(m, 100))
    assert "$0.00" in plain(status.budgets(m, 160))


def test_calls_say_who_did_what_for_which_sub_action_in_which_iteration() -> None:
    calls = [plain(e.lines[0]) for e in logs.call_entries(moment(whole()), 120)]
    assert any("slow agent" in c and "plans the sub-actions  iteration 0" in c for c in calls)
    assert any("fast agent" in c and "writes v2 of collect_wood  iteration 0" in c for c in calls)
    assert any("critic" in c and "judges the iteration  iteration 1" in c for c in calls)
    assert not any("/" in c.split("iteration")[0] for c in calls[1:]), "a step's key is not for people"


def test_a_budget_that_is_used_up_alarms_until_the_session_is_over() -> None:
    def styles(m: Moment) -> str:
        return " ".join(s.style for s in status.budgets(m, 160) if "█" in s.text)

    running, over = whole(ended=False), whole()
    spent = moment(running).history.spent.env_steps
    for story in (running, over):
        next(r for t, r in story.rows if t == "session")["settings"]["budget"]["env_steps"] = spent
    assert "bad" in styles(moment(running))
    assert "bad" not in styles(moment(over))


def test_verdicts_carry_episodes_and_interval_and_agreement() -> None:
    text = said(verdicts.entries(moment(whole()), 100))
    assert "0.76 [0.63, 0.86] n=50" in text
    assert "the policy is better than code alone (code alone 0.44 [0.31, 0.58] n=50)" in text
    assert "agrees with measurement in" in text


def test_the_newest_code_is_diffed_against_the_version_before() -> None:
    m = moment(whole())
    shown, before = code.chosen(m.history, code.Choice("collect_wood"))
    assert shown is not None and before is not None and (shown.version, before.version) == (2, 1)
    lines = code.source_lines(m.text(shown.source_hash) or "", m.text(before.source_hash), shown, 80)
    assert any(plain(line).startswith("   3 -    for _ in range(40):") for line in lines)
    assert any(plain(line).startswith("   4 +    for _ in range(60):") for line in lines)


def test_the_first_version_is_not_compared_with_itself() -> None:
    shown, before = code.chosen(moment(whole()).history, code.Choice("collect_wood", 1, against=1))
    assert shown is not None and shown.version == 1 and before is None


def test_a_refused_source_shows_the_rule_beside_its_line() -> None:
    m = moment(whole())
    shown, _ = code.chosen(m.history, code.Choice("make_wood_pickaxe", 1))
    assert shown is not None
    lines = code.source_lines(m.text(shown.source_hash) or "", None, shown, 80)
    assert "import os" in plain(lines[0]) and "generated code may import nothing" in plain(lines[1])
    assert "not admitted (import)" in text_of(code.facts(m.history, shown, None, 80))


def test_code_and_calls_at_a_cursor_do_not_know_the_future() -> None:
    s = whole()
    first = next(r["seq"] for t, r in s.rows if t == "trial")
    m = moment(s, first)
    assert len(m.history.attempts) == 1
    assert len(logs.merged(m.calls)) == 2
    assert "trained" not in said(plan.entries(m, 90))


def tried_again(s: Story) -> None:
    """The last trial once more."""
    again = dict(next(row for table, row in reversed(s.rows) if table == "trial"))
    for key in ("seq", "session_id", "incarnation", "at", "active"):
        again.pop(key, None)
    s.add("trial", 1.0, **again)


def test_x_counts_every_trial_of_a_version_and_what_its_model_tried() -> None:
    s = whole(ended=False)
    tried_again(s)
    s.event(events.Probed("s", "h", 0, "try_code", "x", 77))
    m = moment(s)
    assert axis_of(m.history, m.metrics).end == m.history.spent.env_steps


def test_x_is_env_steps_of_the_session_without_superseded_rows() -> None:
    m = moment(whole(ended=False))
    axis = axis_of(m.history, m.metrics)
    assert np.all(np.diff(axis.x) > 0)
    assert axis.end == m.history.spent.env_steps
    assert len(axis.rows) == len(m.metrics) - 2
    assert axis.run_starts[1] == sum(
        a.trial.env_steps for a in m.history.attempts if a.trial and a.trial.seq < m.history.runs[1].seq
    )


def test_success_shows_trials_training_and_evaluations() -> None:
    charts = curves.Charts(moment(whole()), curves.Options(smoothing=0.0))
    names = [c.name for c in charts.plot(curves.CHARTS[0]).curves]
    assert names == ["train", "trial", "code alone", "dev", "test"]
    dev = next(c for c in charts.plot(curves.CHARTS[0]).curves if c.name == "dev")
    assert dev.note == "n=50" and dev.low is not None and dev.low[0] < dev.y[0]


def test_more_episodes_of_the_same_policy_are_one_point_of_the_success_chart() -> None:
    s = whole(ended=False)
    before = dev_points(s)
    s.evaluate(1, 4, 6, 18, episodes=20, run=3)
    s.evaluate(1, 4, 7, 3, episodes=30, run=3)
    dev = dev_points(s)
    assert len(dev.x) == len(before.x) + 1
    assert dev.note == "n=50" and dev.y[-1] == 21 / 50


def dev_points(s: Story) -> curves.Curve:
    charts = curves.Charts(moment(s), curves.Options(smoothing=0.0))
    return next(c for c in charts.plot(curves.CHARTS[0]).curves if c.name == "dev")


def test_a_comparison_shows_what_acts_and_what_its_code_alone_does() -> None:
    worse, sequence = whole_with_code_ahead(), Story("s")
    sequence.open()
    sequence.add("iteration", 0.0, sub_task=0, number=0)
    sequence.plan(0, 1)
    sequence.evaluate(0, 1, 1, 26, run=None)
    table = compare.table([moment(worse), moment(sequence)], 0, 120)[0]
    rows = {row[0].text.strip(): plain(row) for row in table.lines}
    assert rows["dev result"].count("0.52 [0.39, 0.65] n=50") == 2
    assert rows["code alone, dev"].count("0.52 [0.39, 0.65] n=50") == 2


def whole_with_code_ahead() -> Story:
    s = Story("s")
    s.open()
    s.add("iteration", 0.0, sub_task=0, number=0)
    s.plan(0, 1)
    s.configure(0, 1)
    s.train(0, 1, 1, updates=2, level=0.3, gain=0.0)
    s.evaluate(0, 1, 1, 15)
    s.evaluate(0, 1, 2, 26, variant="plan")
    s.judge(0, 1, False, "code", "The code alone is ahead.")
    return s


def test_an_ended_session_promises_nothing() -> None:
    s = Story("s")
    s.open()
    going = moment(s)
    s.event(events.Ended(status="stopped", reason="the operator stopped it"))
    ended = moment(s)
    for view, empty in (
        (lambda m: plan.entries(m, 60), "The slow agent did not plan."),
        (lambda m: code.empty(m, 60), "No code in this session."),
        (lambda m: verdicts.entries(m, 60), "No verdicts in this session."),
        (lambda m: world.entries(m, None, 60, 20), "No frames in this session."),
    ):
        assert " yet" in said(view(going))
        assert said(view(ended)) == empty
    assert "yet" not in curves.Charts(ended, curves.Options()).plot(curves.CHARTS[1]).empty


def test_long_curves_are_averaged_before_they_are_smoothed_and_keep_their_level() -> None:
    x = np.arange(50_000.0)
    curve = curves.Curve("", x, np.full(50_000, 2.5), "curve1", segments=(30_000,))
    (found,) = curves._smooth(curve, 0.9)
    assert len(found.x) <= curves.MOST + 2
    np.testing.assert_allclose(found.y, 2.5)
    assert found.segments and found.x[found.segments[0]] > 30_000 - 20


def test_metric_columns_know_late_names_and_missing_values() -> None:
    table = MetricTable()
    none = {"option_usage": {}, "rewards": {}, "milestones": {}, "end_reasons": {}}
    table.extend([none | {"seq": 1, "run": 1, "env_steps": 10, "option_usage": {"a": 1}}])
    table.extend([none | {"seq": 2, "run": 1, "env_steps": 20, "option_usage": {"b": 2}, "kl": None}])
    assert table.column("usage:b")[1] == 2 and np.isnan(table.column("usage:b")[0])
    assert np.isnan(table.column("kl")).all()
    assert table.upto(1) == 1


def test_dead_hung_and_ended_are_told_apart() -> None:
    s = whole(ended=False)
    assert state_of(moment(s, worker=Worker(alive=False)))[0] == "dead"
    assert state_of(moment(s, worker=Worker(alive=True, overdue=12.0)))[0] == "hung"
    assert state_of(moment(s, worker=Worker(alive=True)))[0] == "training"
    assert state_of(moment(whole()))[0] == "finished"
    death = events.TrainerDied(None, "SIGKILL", ["", "MemoryError: no memory"], peak_mb=512)
    text = text_of(banner.lines(moment(s, worker=Worker(alive=False), deaths=[death]), 90))
    assert "worker is dead" in text and "last words (SIGKILL, peak memory 512 MB): MemoryError: no memory" in text


def test_a_console_that_sends_nothing_names_no_key_for_it() -> None:
    s = whole(ended=False)
    gone = moment(s, worker=Worker(alive=False))
    stuck = moment(s, worker=Worker(alive=True, overdue=12.0))
    keys = {"session.resume": "f9", "session.stop": "f8"}
    for seen, key in ((gone, "f9"), (stuck, "f8")):
        assert key in text_of(banner.lines(seen, 200, keys=keys))
        told = text_of(banner.lines(seen, 200, keys=keys, read_only=True))
        assert told.strip().endswith(".") and key not in told and "rlgpt stop" not in told


@pytest.mark.parametrize("jump", [0.0, -3600.0, 365 * 86_400.0])
def test_the_silence_of_a_hung_worker_is_not_counted_by_a_clock_that_jumps(jump: float) -> None:
    story = whole(ended=False)
    seen = moment(story, worker=Worker(alive=True, overdue=12.0, beat=moment(story).now))
    later = replace(seen, now=seen.now + jump)
    assert "No progress for 1m42s" in text_of(banner.lines(later, 200))
    assert "no progress for 1m42s" in plain(status.budgets(later, 200))


def test_the_status_line_shows_budgets_and_time_left() -> None:
    text = plain(status.budgets(moment(whole(ended=False)), 160))
    assert "108k/1M left" in text and "steps/s" in text and "s ago" in text


def test_a_budget_of_nothing_is_a_budget_and_none_is_none() -> None:
    story = whole(ended=False)
    budget = next(r for t, r in story.rows if t == "session")["settings"]["budget"]
    budget.update(env_steps=0, tokens=None, hours=0)
    text = plain(status.budgets(moment(story), 160))
    assert "108k/0 " in text and "/0s" in text and "/2M" not in text


def test_a_machine_that_another_program_told_otherwise_is_shown_as_far_as_it_goes() -> None:
    story = whole(ended=False)
    story.event(events.Resumed(from_seq=1, where={"node": "x\x1b[2J"}))  # type: ignore[typeddict-item]
    assert "processor None at x" in text_of([line for e in system.entries(moment(story), 90) for line in e.lines])


@pytest.mark.parametrize("waits_for", ["approval", "paused"])
def test_who_waits_is_not_said_to_make_no_progress(waits_for: str) -> None:
    story = whole(ended=False)
    story.event(events.Waiting(for_=waits_for))
    assert plain(status.budgets(moment(story), 160)).endswith("♥")


def test_a_frame_can_be_chosen_stepped_and_another_episode_taken() -> None:
    m = moment(whole())
    newest, before = m.films[-1], m.films[-2]
    frames = m.film(newest.seq)
    assert world.current(m, None) == (newest, frames, len(frames) - 1) and len(frames) > 1
    first = world.first_of_film(m, None)
    assert first == (newest.seq, 0) and world.moved(m, first, 1) == (newest.seq, 1)
    assert world.moved(m, first, -1) == world.other_film(m, None, -1) == (before.seq, 0)
    assert world.moved(m, None, 1, inside=True) == (newest.seq, len(frames) - 1)


def test_before_the_first_frame_and_behind_the_last_there_is_no_other() -> None:
    m = moment(whole())
    newest, oldest = m.films[-1], m.films[0]
    last = world.Cursor(newest.seq, len(m.film(newest.seq)) - 1)
    for chosen in (last, world.Cursor(newest.seq, world.END), None):
        assert world.moved(m, chosen, 1) == world.other_film(m, chosen, 1) == chosen
    assert world.moved(m, world.Cursor(oldest.seq, 0), -1) == (oldest.seq, 0)
    assert world.other_film(m, world.Cursor(oldest.seq, 1), -1) == (oldest.seq, 1)


def test_marks_are_in_order_and_jumps_find_their_kind() -> None:
    s = whole()
    marks = timeline.marks(moment(s).history)
    assert [m.seq for m in marks] == sorted(m.seq for m in marks)
    override = timeline.jump(marks, 0, "override", True)
    assert override is not None and override.kind == "override"
    assert timeline.jump(marks, s.seq, "", True) is None
    assert timeline.jump(marks, override.seq, "", False) is not None


def test_a_replay_runs_by_active_time_and_stops_at_the_end() -> None:
    times = timeline.TimeMap()
    for seq in range(1, 101):
        times.add(seq, seq * 2.0)
    p = timeline.Playback().at(1, times)
    p = timeline.Playback(p.seq, p.active, True, 10.0).ticked(1.0, times)
    assert p.active == 12.0 and p.seq == 6
    p = p.ticked(100.0, times)
    assert p.seq is None and not p.playing


def test_speed_stays_between_a_quarter_and_a_thousand() -> None:
    p = timeline.Playback()
    for _ in range(30):
        p = p.faster(1)
    assert p.speed == 1000.0
    for _ in range(30):
        p = p.faster(-1)
    assert p.speed == 0.25


def test_a_diff_marks_words_and_pairs_lines() -> None:
    rows = diff.rows(["a = 1", "same", "gone"], ["a = 2", "same"])
    assert [r.kind for r in rows] == ["changed", "same", "removed"]
    assert [w for w in rows[0].new_words if w[1]] == [("2", True)]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (9_999, "9,999"), (12_345, "12.3k"), (999_960, "1M"), (2_500_000, "2.5M"), (None, "–")],
)
def test_counts_are_short(value: float | None, text: str) -> None:
    assert count(value) == text


def test_numbers_have_their_units() -> None:
    assert (duration(75), duration(3_700), duration(200_000)) == ("1m15s", "1h01m", "2d07h")
    assert (size(999), size(1_500), size(200_000_000)) == ("999 B", "1.5 kB", "200 MB")
    assert (decimal(0.12345), decimal(12.345), decimal(float("nan"))) == ("0.123", "12.3", "–")


def test_a_rate_without_episodes_is_no_rate() -> None:
    assert rate(0, 0) == "–"
    low, high = wilson(31, 50)
    assert (round(low, 3), round(high, 3)) == (0.482, 0.741)


def test_an_empty_session_draws_everywhere() -> None:
    s = Story()
    s.open()
    m = moment(s)
    assert "has not planned yet" in said(plan.entries(m, 60))
    assert "No verdicts yet" in said(verdicts.entries(m, 60))
    assert "No frames yet" in said(world.entries(m, None, 60, 20))
    assert "No code yet" in said(code.empty(m, 60))


def test_a_replayed_chart_knows_no_name_that_only_later_rows_have() -> None:
    then = moment(whole(), next(row["seq"] for table, row in whole().rows if table == "metric"))
    later = MetricTable()
    later.extend([row for table, row in whole().rows if table == "metric"])
    last = int(later.column("seq")[-1])
    mappings = {"milestones": {"a_first": 1}, "option_usage": {"new": 9}, "rewards": {}, "end_reasons": {}}
    later.extend([{"seq": last + 1, "run": 1} | mappings])
    replayed = replace(then, metrics=later)
    for chart in curves.CHARTS:
        live, again = (curves.Charts(m, curves.Options()).plot(chart) for m in (then, replayed))
        assert [(c.name, c.style) for c in again.curves] == [(c.name, c.style) for c in live.curves], chart.key


def test_a_reply_is_shown_as_it_was_written_not_as_escaped_json() -> None:
    source = "def go(view):\n    while True:\n        yield 'noop'"
    reply = json.dumps({"content": json.dumps({"source": source, "note": 'a "word"'}), "refusal": "", "model": "m"})
    assert logs.readable(reply).split("\n") == [
        "source:", "  def go(view):", "      while True:", "          yield 'noop'", 'note: a "word"', "", "model: m",
    ]  # fmt: skip
    plan_ = json.dumps({"items": [{"name": "a", "mode": "rl"}, {"name": "b", "mode": "code"}], "none": []})
    assert logs.readable(plan_).split("\n") == [
        "items:", "  - name: a", "    mode: rl", "  - name: b", "    mode: code", "none: none",
    ]  # fmt: skip
    for odd in ("no json {", "[" * 100_000, "[" * 900 + "]" * 900):
        assert logs.readable(odd).strip()


def test_the_log_tells_the_story_of_a_session_in_lines_by_level() -> None:
    m = moment(whole())
    story = said(logs.log_entries(m, 160, "info"))
    for part in ("plan 1 is active", "trial collect_wood", "verdict on iteration 0", "PPO run 1 finished"):
        assert part in story
    assert "in trials" not in story and "in trials" in said(logs.log_entries(m, 160, "debug"))
    warned = said(logs.log_entries(m, 160, "warning"))
    assert "refused" in warned and "is active" not in warned


def test_a_line_that_replaces_none_is_coloured_as_source_and_only_changed_words_are_marked() -> None:
    old, new = ["a = 1"], ["a = 2", "b = 'text'"]
    shown = diff.unified(diff.rows(old, new), syntax.coloured("\n".join(new)))
    styles = [{span.style for span in spans} for spans in shown]
    assert [plain(spans).split()[1] for spans in shown] == ["-a", "+a", "+b"]
    assert "added_word" in styles[1] and "added_word" not in styles[2] and "code_string added" in styles[2]


def test_a_leap_gets_over_a_stretch_without_rows() -> None:
    times = timeline.TimeMap()
    for seq, active in ((1, 0.0), (2, 1.0), (3, 30.0), (4, 90.0), (5, 100.0)):
        times.add(seq, active)
    places, playback = [], timeline.Playback().at(3, times)
    while playback.seq is not None:
        places.append(playback.seq)
        playback = playback.at(timeline.leap(playback, 0.05, times), times)
    assert places == [3, 4]
    assert timeline.leap(timeline.Playback().at(4, times), -0.05, times) == 3
    assert timeline.leap(timeline.Playback().at(None, times), -0.05, times) == 4
    assert timeline.Playback().at(timeline.leap(timeline.Playback().at(1, times), -0.05, times), times).seq == 1


def test_the_system_pane_tells_the_worker_as_it_is_now_wherever_the_cursor_is() -> None:
    over, dead = Worker(status="ended"), Worker(status="running")
    past = said(system.entries(moment(whole(), seq=100, worker=over), 90))
    assert "the session has ended" in past and "dead" not in past
    assert "the worker is dead" in said(system.entries(moment(whole(ended=False), worker=dead), 90))
    assert "not started yet" in said(system.entries(moment(whole(), seq=1, worker=Worker(status="created")), 90))


def test_a_store_of_a_team_that_is_away_is_told_on_the_status_line_and_in_the_system_pane() -> None:
    m = moment(whole(ended=False))
    near, away = Worker(True, "running", beat=m.now), Worker(True, "running", beat=m.now, behind_since=m.now - 12)
    assert "shared store" not in plain(status.budgets(replace(m, worker=near), 160))
    assert "shared store: 12 s behind" in plain(status.budgets(replace(m, worker=away), 160))
    told = " ".join(said(system.entries(replace(m, worker=away), 90)).split())
    assert "shared store: 12 s behind; the session pauses after 10 min" in told


def test_the_list_shows_the_task_where_there_is_room_for_it() -> None:
    assert "task" in dict(sessions.shown_columns(140))
    for width in range(60, 260):
        chosen = sessions.shown_columns(width)
        assert sum(size + 1 for _, size in chosen) + 3 <= max(width, 76)
        assert {"state", "name"} <= set(dict(chosen))
    every = {name for name, _, _ in sessions._COLUMNS}
    assert set(dict(sessions.shown_columns(240))) == every - {"node"}
    assert set(dict(sessions.shown_columns(260, elsewhere=True))) == every


def test_an_estimate_is_no_limit_and_says_what_is() -> None:
    found = estimate("gpt-5-mini", 3, (0.25, 2.0), [])
    text = sentence(found, 5.0, 2e6)
    assert "assumes 27 calls an iteration" in text and found.tokens == 27 * 4_700 * 4
    assert "at most" not in text
    assert "An iteration may take 437 calls; only the budget of $5.00 ends it" in text
    assert "without a budget nothing ends it earlier" in sentence(found, None, 2e6)
    unpriced = sentence(estimate("m", 0, None, []), 5.0, 2e6)
    assert "price of this model is unknown" in unpriced and "only the budget of 2M tokens ends it" in unpriced
    loop = LoopSettings()
    assert (loop.inner, loop.depth) == (INNER, DEPTH)


def test_an_outage_of_the_model_is_told_at_once_and_gone_with_the_answer() -> None:
    s = whole(ended=False)
    quiet = moment(s)
    assert "no answer" not in text_of(banner.lines(quiet, 200))
    s.call("slow", "plan/0.2", "What now?", "", error="connection refused")
    away = moment(s)
    assert "gives the slow agent no answer, try" in text_of(banner.lines(away, 200))
    assert "connection refused" in text_of(banner.lines(away, 200))
    told = [row for row in away.logs if "no answer for the slow agent" in row["event"]]
    assert [row["level"] for row in told] == ["warning"] and "(try 1): connection refused" in told[0]["event"]
    s.call("slow", "plan/0.2", "What now?", "{}")
    assert "no answer" not in text_of(banner.lines(moment(s), 200))


def test_a_restart_is_told_whole_and_announced() -> None:
    s = whole(ended=False)
    before = news.known(moment(s), {})
    words = "torch.OutOfMemoryError: tried to allocate 2.00 GiB of 1.50 GiB that were free on this machine"
    death = events.TrainerDied(exit_code=None, signal="SIGKILL", last_lines=["", words], restart=True)
    s.event(death)
    m = moment(s, deaths=[death])
    lines = [plain(line) for entry in logs.log_entries(m, 60) for line in entry.lines]
    assert max(map(len, lines)) <= 60
    assert words.replace(" ", "") in "".join(lines).replace(" ", "")
    assert "it is started again" in " ".join(lines[-3:])
    found = news.since(before, news.known(m, {}), m, {})
    assert [(n.severity, n.bell) for n in found] == [("warning", True)] and "is started again" in found[0].sentence


def test_a_worker_that_was_asked_for_is_told_until_it_is_there() -> None:
    dead = moment(whole(ended=False), worker=Worker(alive=False, status="running"))
    assert "A worker is being started" in text_of(banner.lines(dead, 90, starting=True))
    assert "A worker is being started" not in text_of(banner.lines(moment(whole(ended=False)), 90, starting=True))


def test_an_answer_without_code_is_no_refusal_and_does_not_hide_the_code_before_it() -> None:
    s = whole(ended=False)
    s.attempt(1, 4, "collect_wood", "", 0, admitted=False, rule="empty", message="there is no code", error="rule empty")
    h = moment(s).history
    ended = h.attempts[-1]
    shown, _ = code.chosen(h, code.Choice("collect_wood"))
    assert shown is not None and shown.version == ended.version - 1
    chosen, before = code.chosen(h, code.Choice("collect_wood", ended.version))
    assert chosen is ended
    text = text_of(code.facts(h, ended, before, 90))
    assert "no further version" in text and "refused" not in text and "rule empty" not in text


@pytest.mark.parametrize(
    ("decision", "words"),
    [("item_20", "step 21 of the script"), ("item_x", "item_x"), ("collect_wood", "collect_wood")],
)
def test_a_step_without_a_name_is_told_by_its_number(decision: str, words: str) -> None:
    assert decision_words(decision) == words


def test_a_trial_stands_in_the_iteration_in_which_it_was_made() -> None:
    """Code that failed is tried again once the code before it has been rewritten."""
    s = whole(ended=False)
    first, last = s.history.iterations[0], s.history.iterations[-1]
    tried = next(a for a in s.history.attempts if a.trial and a.trial.revision in first.plans)
    assert first is not last and tried.trial
    before = (tried.trial.successes, tried.trial.episodes)
    row = next(dict(row) for table, row in s.rows if table == "trial" and row["sub_action"] == tried.sub_action)
    for key in ("seq", "session_id", "incarnation", "at", "active"):
        row.pop(key, None)
    s.add("trial", 1.0, **row | {"revision": last.plans[-1], "version": tried.version, "episodes": 7, "successes": 6})
    told = record.whole(s.history)["iterations"]
    measured = [
        [a["measured"] for a in i["attempts"] if (a["sub_action"], a["version"]) == (tried.sub_action, tried.version)]
        for i in (told[0], told[-1])
    ]
    assert [[(m["successes"], m["episodes"]) for m in each] for each in measured] == [[before], [(6, 7)]]
