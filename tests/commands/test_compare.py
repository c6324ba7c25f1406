from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rlgpt.console.commands import compare_svg
from rlgpt.console.commands.compare import Run, analysed
from rlgpt.console.commands.failure import Failure
from rlgpt.console.view.arms import arm_of, differing
from rlgpt.store import creation, events, export, tables
from rlgpt.store.experiments import Manifest, Planned
from rlgpt.store.export.svg import Line
from rlgpt.store.folder import SessionFolder
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer

from .conftest import TASK_INFO, Answer, make, write_plan

Cli = Callable[..., Answer]


def session(seed: int, successes: int, policy: str = "ppo", **settings: Any) -> SessionFolder:
    made = make(f"s{seed}-{successes}", **settings, seed=seed)
    with Writer(made) as writer:
        write_plan(writer)
        with writer.transaction() as tx:
            run = {"sub_task": 0, "iteration": 0, "revision": 1, "run": 1, "config_hash": "c"}
            tx.add(tables.TrainingRun(**run, env_steps_planned=900))
            for update in (1, 2, 3):
                tx.add(
                    tables.Metric(
                        run=1, update=update, env_steps=300 * update, decisions=9, episodes=20, successes=5 * update
                    )
                )
            tx.event(events.TrainingEnded(run=1, state="finished", reason="", env_steps=900, decisions=27, updates=3))
            for split in ("dev", "test"):
                tx.add(
                    tables.Evaluation(
                        sub_task=0, iteration=0, revision=1, number=1, split=split, variant="full", first=0,
                        episodes=100, successes=successes, ci_low=0.0, ci_high=1.0, return_mean=0.0, length_mean=9.0,
                        dead_loops=1, env_steps=900, run=1, policy=policy,
                    )
                )  # fmt: skip
            tx.add(
                tables.Verdict(
                    sub_task=0, iteration=0, revision=1, sub_action=None, version=None, author="critic",
                    success=False, confidence=1.0, cause="",
                )
            )  # fmt: skip
            tx.event(events.Incumbent(sub_task=0, iteration=0, why="the only iteration so far"))
        writer.event(events.Ended(status="finished", reason=""))
    return made


@pytest.fixture
def arms() -> list[str]:
    """Five paired seeds of two arms that differ in one setting."""
    made = [session(seed, 40 + seed, loop={"iterations": 0}) for seed in range(5)]
    made += [session(seed, 80 + seed, loop={"iterations": 3}) for seed in range(5)]
    return [one.id for one in made]


def test_sessions_fall_into_arms_by_the_settings_that_differ(rlgpt: Cli, arms: list[str]) -> None:
    answer = rlgpt("compare", *arms, "--json").document
    ((first, second),) = [task["arms"] for task in answer["tasks"]]
    assert (first["arm"], second["arm"]) == ("loop.iterations=0", "loop.iterations=3")
    assert (first["seeds"], first["episodes"]) == (5, 500)
    assert first["success"]["value"] == pytest.approx(0.42) and second["success"]["value"] == pytest.approx(0.82)
    assert answer["title"] == "RL-GPT loop, scripted planner"


def test_arms_are_compared_by_the_seeds_they_share(rlgpt: Cli, arms: list[str]) -> None:
    (found,) = rlgpt("compare", *arms, "--json").document["differences"]
    assert (found["pairs"], found["mean"]) == (5, pytest.approx(0.4))
    assert found["low"] == pytest.approx(0.4) and found["p"] == pytest.approx(2 / 32)
    assert found["probability_of_improvement"] == 1.0
    (other,) = rlgpt("compare", *arms[1:], "--base", "loop.iterations=3", "--json").document["differences"]
    assert (other["pairs"], other["mean"]) == (4, pytest.approx(-0.4))


def test_bundles_compare_as_the_sessions_they_hold(
    rlgpt: Cli, arms: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    there = rlgpt("compare", *arms, "--json").document
    (tmp_path / "evidence").mkdir()
    for number, name in enumerate(arms):
        export.export(home / "sessions" / name, "evidence", tmp_path / "evidence" / f"{number}.rlgpt")
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "elsewhere"))
    assert rlgpt("compare", tmp_path / "evidence", "--json").document == there


def test_one_session_has_the_interval_of_one_policy_and_says_so(rlgpt: Cli, arms: list[str]) -> None:
    assert "0.40 [0.31, 0.50] (one policy)" in rlgpt("compare", arms[0]).out


def test_no_cell_of_the_rows_is_one_that_a_spreadsheet_would_run(rlgpt: Cli, tmp_path: Path) -> None:
    hostile = session(0, 40, method={"label": "=HYPERLINK(1)"})
    assert rlgpt("compare", hostile.id, "--csv", tmp_path / "a.csv").code == 0
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [(row["arm"], row["successes"]) for row in csv.DictReader(file)] == [("'=HYPERLINK(1)", "40")]


def test_curves_and_rows_are_written(rlgpt: Cli, arms: list[str], tmp_path: Path) -> None:
    rlgpt("compare", *arms, "--csv", tmp_path / "new" / "a.csv", "--svg", tmp_path / "new" / "a.svg")
    with (tmp_path / "new" / "a.csv").open(newline="") as file:
        assert [int(row["successes"]) for row in csv.DictReader(file)][:2] == [40, 41]
    drawn = ElementTree.parse(tmp_path / "new" / "a.svg").getroot()
    lines, bands = ([e for e in drawn.iter() if what in e.get("class", "").split()] for what in ("line", "band"))
    assert len(lines) == len(bands) == 2
    corners = [tuple(map(float, corner.split(","))) for corner in bands[0].get("points", "").split()]
    line = [tuple(map(float, point.split(" "))) for point in lines[0].get("d", "")[1:].split("L")]
    low, high = corners[: len(line)], corners[: len(line) - 1 : -1]
    assert [x for x, _ in low] == [x for x, _ in high] == [x for x, _ in line]
    assert all(above <= y <= below for (_, below), (_, y), (_, above) in zip(low, line, high, strict=True))
    assert any("with 95% intervals" in "".join(e.itertext()) for e in drawn.iter())


def test_no_file_is_replaced_and_a_dash_is_none(rlgpt: Cli, arms: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    assert rlgpt("compare", *arms, "--csv", tmp_path / "a.csv").code == 4
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert rlgpt("compare", *arms, "--csv", "-").code == 2


def test_a_session_that_was_not_tested_is_named_and_left_out(rlgpt: Cli, arms: list[str]) -> None:
    other = make("new")
    answer = rlgpt("compare", arms[0], other.id, "--json").document
    assert answer["untested"] == [other.id]
    assert rlgpt("compare", arms[0], "nobody").code == 3


def test_an_experiment_is_compared_by_its_name(rlgpt: Cli, arms: list[str]) -> None:
    """Also one that is half done, and one of whose sessions somebody has removed."""
    planned = [Planned(TASK_INFO["id"], "rlgpt", seed, {}, one) for seed, one in enumerate([*arms, "", "gone"])]
    manifest = Manifest("halfway", "critic", "", planned)
    manifest.save()
    answer = rlgpt("compare", "halfway", "--json")
    assert answer.document == rlgpt("compare", *arms, "--json").document
    assert "seed 10: not begun, left out" in answer.err and "seed 11: its session is gone, left out" in answer.err
    manifest.path.write_text("{")
    answer = rlgpt("compare", "halfway")
    assert answer.code == 4 and "cannot be read" in answer.err and not answer.out
    assert rlgpt("compare", "halfwa").code == 3


def test_a_session_that_is_named_twice_counts_once(rlgpt: Cli, arms: list[str], tmp_path: Path, home: Path) -> None:
    once = rlgpt("compare", *arms, "--json").document
    (tmp_path / "evidence").mkdir()
    export.export(home / "sessions" / arms[0], "evidence", tmp_path / "evidence" / "same.rlgpt")
    assert rlgpt("compare", *arms, arms[0], tmp_path / "evidence", "--json").document == once


def test_another_session_of_the_same_seed_is_told(rlgpt: Cli, arms: list[str]) -> None:
    other = session(0, 77, loop={"iterations": 0})
    (told,) = rlgpt("compare", *arms, other.id, "--json").document["seeds_again"]
    assert "2 sessions of seed 0" in told and told in rlgpt("compare", *arms, other.id).err


def test_a_seed_that_was_run_twice_is_paired_by_its_mean() -> None:
    def run(arm: str, seed: int, successes: int) -> Run:
        return Run(f"{arm}-{seed}-{successes}", "t", arm, seed, successes, 100, 0, 900, None, None, None)

    runs = [run("a", seed, successes) for seed, successes in ((0, 40), (0, 80), (1, 50))]
    (difference,) = analysed([*runs, run("b", 0, 50), run("b", 1, 50)], "b")["differences"]
    assert difference["mean"] == pytest.approx((0.10 + 0.0) / 2)


def test_nothing_to_compare_or_to_draw_is_a_sentence(rlgpt: Cli, arms: list[str], tmp_path: Path) -> None:
    empty = tmp_path / "none"
    empty.mkdir()
    assert rlgpt("compare", empty).code == 3
    assert rlgpt("compare", "").code == 3
    assert rlgpt("compare", *arms, "--by", "no.setting").code == 2
    assert rlgpt("compare", make("new").id, "--svg", tmp_path / "a.svg").code == 2
    assert rlgpt("compare", arms[-1], "--svg", tmp_path / "a.svg", "--coverage", tmp_path / "b.svg").code == 2
    assert not (tmp_path / "a.svg").exists()
    assert "none of these sessions has test episodes" in rlgpt("compare", make("newer").id, "--base", "x").err


def test_a_pipe_in_a_folder_of_bundles_is_passed_over(rlgpt: Cli, tmp_path: Path) -> None:
    (tmp_path / "bundles").mkdir()
    os.mkfifo(tmp_path / "bundles" / "pipe.rlgpt")
    answer = rlgpt("compare", str(tmp_path / "bundles"))
    assert answer.code == 3 and "there is no bundle" in answer.err


def test_names_and_seeds_make_no_arm() -> None:
    a = {"name": "a", "seed": 1, "task": "x", "llm": {"kind": "rules", "model": "m"}}
    b = {"name": "b", "seed": 2, "task": "y", "llm": {"kind": "rules", "model": "n"}}
    assert differing([a, b]) == ["llm.model"]
    assert arm_of(a, ["llm.model"]) == "llm.model=m" and arm_of(a, []) == "all"


def test_p_values_are_adjusted_over_all_declared_tasks() -> None:
    runs = [
        Run(f"{task}{arm}{seed}", task, arm, seed, 50 + 30 * (arm == "b"), 100, 0, 1, 0.0, None, None)
        for task in ("t1", "t2")
        for arm in ("a", "b")
        for seed in range(6)
    ]
    found = analysed(runs, None)["differences"]
    assert [d["p_holm"] for d in found] == pytest.approx([2 * 2 / 2**6] * 2)
    with pytest.raises(Failure):
        analysed(runs, "c")


def test_an_experiment_names_its_arms_and_its_controls_stand_beside_them(rlgpt: Cli) -> None:
    made = []
    for seed in (0, 1):
        made.append(session(seed, 50, method={"label": "rlgpt", "controls": ["random", "prior"]}, loop={"inner": 3}))
        with Writer(made[-1]) as writer, writer.transaction() as tx:
            tx.add(
                tables.Evaluation(
                    sub_task=0, iteration=0, revision=1, number=3, split="test", variant="random", first=0,
                    episodes=100, successes=10 + seed, ci_low=0.0, ci_high=1.0, return_mean=0.0, length_mean=9.0,
                    dead_loops=1, env_steps=900, run=1, policy="ppo",
                )
            )  # fmt: skip
        made.append(session(seed, 30, method={"label": "code", "arm": "code"}, loop={"inner": 10}))
    answer = rlgpt("compare", *(one.id for one in reversed(made)), "--json").document
    ((task),) = answer["tasks"]
    rates = {arm["arm"]: (arm["seeds"], arm["success"]["value"]) for arm in task["arms"]}
    assert rates == {
        "rlgpt": (2, pytest.approx(0.5)),
        "code": (2, pytest.approx(0.3)),
        "rlgpt: random": (2, pytest.approx(0.105)),
    }
    assert answer["base"] == "rlgpt"
    assert "rlgpt: random" in rlgpt("compare", *(one.id for one in made)).out


def test_a_session_that_chose_its_code_alone_is_its_own_control(rlgpt: Cli) -> None:
    """Else the pairs with the plan would be the sessions alone in which learning paid."""
    method = {"label": "rlgpt", "controls": ["plan"]}
    learnt, coded = session(0, 50, method=method), session(1, 40, policy="plan", method=method)
    ids = (learnt.id, coded.id)
    alone = rlgpt("compare", coded.id, "--json").document
    assert [arm["arm"] for arm in alone["tasks"][0]["arms"]] == ["rlgpt"], "no session has played the control"
    with Writer(learnt) as writer, writer.transaction() as tx:
        tx.add(
            tables.Evaluation(
                sub_task=0, iteration=0, revision=1, number=3, split="test", variant="plan", first=0,
                episodes=100, successes=20, ci_low=0.0, ci_high=1.0, return_mean=0.0, length_mean=9.0,
                dead_loops=1, env_steps=900, run=1, policy="plan",
            )
        )  # fmt: skip
    (difference,) = rlgpt("compare", *ids, "--json").document["differences"]
    assert (difference["arm"], difference["pairs"]) == ("rlgpt: plan", 2)
    assert difference["mean"] == pytest.approx((-0.3 + 0.0) / 2)


def test_a_score_is_compared_in_percent_and_training_and_test_are_kept_apart(rlgpt: Cli) -> None:
    info = TASK_INFO | {"id": "crafter_score", "kind": "score", "milestones": ["a", "b"]}
    chosen = Settings.model_validate({"task": "crafter_score", "seed": 1})
    made = creation.create(chosen, task_info=info, world_version="1", versions={})
    with Writer(made) as writer:
        write_plan(writer)
        with writer.transaction() as tx:
            tx.add(tables.TrainingRun(sub_task=0, iteration=0, revision=1, run=1, config_hash="c", env_steps_planned=9))
            for update, steps in ((1, 900_000), (2, 1_100_000)):
                tx.add(
                    tables.Metric(
                        run=1, update=update, env_steps=steps, decisions=9, episodes=10, successes=0,
                        milestones={"a": 10, "b": 10 * (update - 1)}, score=0.09 * update,
                    )
                )  # fmt: skip
            tx.event(
                events.TrainingEnded(run=1, state="finished", reason="", env_steps=1_100_000, decisions=9, updates=2)
            )
            for split in ("dev", "test"):
                tx.add(
                    tables.Evaluation(
                        sub_task=0, iteration=0, revision=1, number=1, split=split, variant="full", first=0,
                        episodes=10, successes=0, ci_low=0.0, ci_high=1.0, return_mean=0.0, length_mean=9.0,
                        dead_loops=0, env_steps=900, run=1, policy="ppo", milestones={"a": 10, "b": 10},
                        score=0.75, score_low=0.4, score_high=0.9,
                    )
                )  # fmt: skip
            tx.add(
                tables.Verdict(
                    sub_task=0, iteration=0, revision=1, sub_action=None, version=None, author="critic",
                    success=False, confidence=1.0, cause="",
                )
            )  # fmt: skip
            tx.event(events.Incumbent(sub_task=0, iteration=0, why="the only iteration so far"))
    ((arm,),) = [task["arms"] for task in rlgpt("compare", made.id, "--json").document["tasks"]]
    assert arm["score_test"] == pytest.approx(75.0)
    assert arm["score_train"] == pytest.approx(9.0), "after the first million env steps it no longer counts"
    assert "75.00 (one session)" in rlgpt("compare", made.id).out


def test_curves_are_drawn_as_png_where_matplotlib_is(rlgpt: Cli, arms: list[str], tmp_path: Path) -> None:
    assert rlgpt("compare", *arms, "--png", tmp_path / "a.png").code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_names_with_control_characters_give_a_file_that_can_be_read() -> None:
    lines = [Line(f"arm {n} \x1b[31m\x00", [(0.0, 0.1), (1.0, 0.9)]) for n in range(30)]
    drawn = ElementTree.fromstring(compare_svg.svg({"task\x07 <&": lines}, "unit", "what"))
    words = [str(text.text) for text in drawn.iter() if text.tag.endswith("text")]
    assert "arm 29 [31m" in words and "task <&: what" in words


def test_different_tasks_are_never_drawn_over_each_other_and_a_session_is_called_by_its_name(
    rlgpt: Cli, tmp_path: Path
) -> None:
    made = [
        session(1, 40, loop={"iterations": 0}, budget={"cost": 2.0}),
        session(1, 80, loop={"iterations": 3}, budget={"cost": 3.0}),
        session(2, 60, task="collect_stone"),
    ]
    rlgpt("compare", *(one.id for one in made), "--svg", tmp_path / "a.svg", "--png", tmp_path / "a.png")
    drawn = ElementTree.parse(tmp_path / "a.svg").getroot()
    charts = drawn.findall("{*}g")
    texts = [["".join(text.itertext()) for text in chart.findall(".//{*}text")] for chart in charts]
    assert len(charts) == 2
    assert any("collect_wood" in text for text in texts[0]) and any("collect_stone" in text for text in texts[1])
    assert any("s1-40" in text for text in texts[0]) and any("s1-80" in text for text in texts[0])
    assert not any("s2-60" in text for text in texts[0]) and any("s2-60" in text for text in texts[1])
    assert "iterations" not in (tmp_path / "a.svg").read_text()


def test_sessions_of_one_label_with_other_budgets_are_told(rlgpt: Cli) -> None:
    label = {"method": {"label": "code"}}
    many, few = (session(3, seed, budget={"env_steps": steps}, **label) for seed, steps in ((80, 200), (81, 60)))
    (told,) = rlgpt("compare", many.id, few.id, "--json").document["mixed"]
    assert told.endswith("code: its sessions differ in budget.env_steps")
    assert told in rlgpt("compare", many.id, few.id).err
    assert not rlgpt("compare", many.id, few.id, "--by", "budget.env_steps", "--json").document["mixed"]
    alike = session(3, 82, budget={"env_steps": 200}, **label)
    assert not rlgpt("compare", many.id, alike.id, "--json").document["mixed"]


def test_sessions_of_one_arm_in_two_versions_of_a_world_are_told(rlgpt: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    before = session(1, 40)
    make_one = creation.create
    monkeypatch.setattr(creation, "create", lambda *a, **k: make_one(*a, **k | {"world_version": "2"}))
    after = session(2, 50)
    (told,) = rlgpt("compare", before.id, after.id, "--json").document["mixed_worlds"]
    assert told.endswith("its sessions differ in version of the world")
    assert told in rlgpt("compare", before.id, after.id).err


@pytest.mark.parametrize(("model", "title"), [("rlgpt-rules", "RL-GPT loop, scripted planner"), ("gpt-5", "RL-GPT")])
def test_results_of_the_scripted_planner_stay_so_in_a_replay_whose_origin_is_gone(
    rlgpt: Cli, model: str, title: str
) -> None:
    again = session(1, 40, llm={"kind": "replay:a-session-that-is-gone"})
    with Writer(again) as writer:
        call = {"call": "c", "step": "s", "role": "slow", "model": model, "request_hash": writer.text("q")}
        writer.add(tables.LlmCall(**call, state="sent"))
    answer = rlgpt("compare", again.id, "--json").document
    assert answer["title"] == title
    page = rlgpt("report", again.id, "-o", "page.html")
    assert page.code == 0
    assert ("scripted planner" in Path("page.html").read_text()) == (title != "RL-GPT")


def test_the_rule_based_model_has_one_name() -> None:
    from rlgpt.agents.endpoint import RULES_MODEL
    from rlgpt.store.calls import RULE_BASED

    assert RULES_MODEL == RULE_BASED


def test_sessions_of_one_label_with_other_free_settings_are_told(rlgpt: Cli) -> None:
    plain = session(3, 90, method={"label": "code"})
    other = session(3, 91, method={"label": "code", "rl": {"prior_kl": 0.5}}, llm={"extra": {"service_tier": "flex"}})
    (told,) = rlgpt("compare", plain.id, other.id, "--json").document["mixed"]
    assert told.endswith("differ in llm.extra.service_tier, method.rl.prior_kl")
