"""Arms as whole sessions of the toy world, in this process: what the settings promise stands in the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlgpt.agents import choice
from rlgpt.agents.contracts import RewardTerm, RlConfigReply
from rlgpt.agents.errors import AgentError
from rlgpt.store.event_payloads import DECISIONS
from rlgpt.store.events import IterationResult
from rlgpt.store.history import History, IterationState
from rlgpt.store.reader import Reader
from rlgpt.store.settings import MethodSettings
from rlgpt.training import worker
from rlgpt.training.opening import open_session
from rlgpt.training.session import creation
from rlgpt.training.steps.config_rows import shared_by_arms

WORLD = "tests.worlds.corridor:make_world"
SMALL = {"iterations": 1, "dev_first": 3, "dev_more": 0, "test_episodes": 3, "inner": 1, "depth": 1}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def finished(method: dict[str, Any], env_steps: int = 1024, **settings: Any) -> Reader:
    flags = {"task": "take_key", "world": WORLD, "skills": "none", "budget": {"env_steps": env_steps}}
    made = creation.create(flags | {"loop": SMALL, "method": method} | settings)
    live = open_session(Path(made["folder"]))
    try:
        worker.run(live)
    finally:
        live.close()
    return Reader(Path(made["folder"]))


def test_rl_alone_learns_from_the_published_reward_for_the_whole_budget_and_is_tested_with_its_controls() -> None:
    method = {"arm": "rl", "reward": "published", "whole_budget": True, "controls": ["plan", "random", "prior"]}
    with finished(method, loop=SMALL | {"iterations": 0}) as reader:
        history = reader.history_at()
        (config,) = reader.rows("rl_config")
        tested = {row["variant"]: row for row in reader.rows("evaluation", {"split": "test"})}
        assert {item.mode for plan in history.plans.values() for item in plan.items} == {"rl"}
        assert not reader.rows("code_version")
        assert config["config"]["reward"] == [{"term": "world", "argument": "", "weight": 1.0}]
        assert config["config"]["env_steps"] == 1024 and history.spent.env_steps >= 1024
        assert set(tested) == {"full", "greedy", "options_off", "primitives_off", "random", "prior"}
        assert {row["policy"] for row in tested.values()} == {"ppo"} and history.status == "ended"


@pytest.mark.parametrize(("task", "term"), [("take_key", "task"), ("score", "world")])
def test_arms_may_learn_from_success_alone_where_there_is_any(task: str, term: str) -> None:
    method = {"arm": "rl", "reward": "success", "whole_budget": True}
    with finished(method, env_steps=256, task=task, loop=SMALL | {"iterations": 0}) as reader:
        (config,) = reader.rows("rl_config")
        assert config["config"]["reward"] == [{"term": term, "argument": "", "weight": 1.0}]
        measured = [*reader.rows("evaluation"), *(row for row in reader.rows("metric") if row["episodes"])]
        assert {row["score"] is not None for row in measured} == {task == "score"}


def test_the_result_of_a_score_is_the_worlds_and_successes_stay_what_was_measured() -> None:
    with finished({"arm": "rl", "whole_budget": True}, 512, task="score", loop=SMALL | {"iterations": 0}) as reader:
        history = reader.history_at()
        for row in reader.rows("evaluation"):
            assert row["successes"] == 0 and row["score_low"] <= row["score"] <= row["score_high"]
            assert row["score"] == pytest.approx(sum(row["milestones"].values()) / row["episodes"] / 3)
        reached = episodes = 0
        for row in reader.rows("metric"):
            reached, episodes = reached + sum(row["milestones"].values()), episodes + row["episodes"]
            assert row["score"] == (pytest.approx(reached / episodes / 3) if episodes else None)
        best = history.incumbent
        assert best and best.result and best.result.score == history.developed(best).score


def test_what_the_worker_decided_is_written_once_before_the_next_step() -> None:
    with finished({"arm": "rlgpt"}) as reader:
        rows = [(row["kind"], row["payload"]) for row in reader.rows("event")]
        kinds = [kind for kind, _ in rows]
        decided = [(kind, str(payload)) for kind, payload in rows if kind in DECISIONS]
        assert len(set(decided)) == len(decided) and {kind for kind, _ in decided} == {"iteration_result", "incumbent"}
        ended = kinds.index("ended")
        assert all(kinds.index(kind) < ended for kind, _ in decided)
        for row in reader.rows("verdict", {"sub_action": None}):
            behind = [r for r in reader.rows("event") if r["seq"] > row["seq"]]
            assert behind[0]["kind"] == "iteration_result", "nothing comes between a verdict and what it leads to"
        assert choice.undecided(reader.history_at()) == []
        place = reader.folder
    live = open_session(place.path)
    try:
        worker.run(live)
    finally:
        live.close()
    with Reader(place) as reader:
        again = [(row["kind"], str(row["payload"])) for row in reader.rows("event") if row["kind"] in DECISIONS]
    assert again == decided


def test_what_is_tested_is_how_the_policy_plays_and_the_other_way_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def tested() -> dict[str, Any]:
        with finished({"arm": "rl", "whole_budget": True}, env_steps=512, loop=SMALL | {"iterations": 0}) as reader:
            rows = reader.rows("evaluation", {"split": "test"})
            kept = ("policy", "successes", "return_mean", "length_mean", "option_usage")
            return {row["variant"]: {key: row[key] for key in kept} for row in rows}

    sampled = tested()
    decide = choice.iteration_result

    def greedily(h: History, iteration: IterationState) -> IterationResult | None:
        result = decide(h, iteration)
        return replace(result, variant="greedy") if result else None

    monkeypatch.setattr(choice, "iteration_result", greedily)
    greedy = tested()
    assert sampled["full"] != sampled["greedy"]
    assert greedy["full"] == sampled["greedy"] and greedy["sampled"] == sampled["full"]
    assert all(rows["options_off"] == rows["full"] for rows in (sampled, greedy)), "this arm has no options"


def test_code_alone_never_trains_whatever_the_slow_agent_says_and_ends_tested() -> None:
    with finished({"arm": "code"}, critic="none") as reader:
        history = reader.history_at()
        assert {plan.executor for plan in history.plans.values()} == {"sequence"}
        assert {item.mode for plan in history.plans.values() for item in plan.items} == {"code"}
        assert all(plan.attempted["take_key"]["mode"] == "rl" for plan in history.plans.values())
        assert not history.runs and [e["variant"] for e in reader.rows("evaluation", {"split": "test"})] == ["full"]
        verdicts = reader.rows("verdict")
        assert verdicts and all(row["advice_slow"] == row["advice_fast"] == "" for row in verdicts)
        assert all("no critic" in row["cause"] for row in verdicts)


def test_an_arm_may_set_fields_of_the_rl_configuration_and_a_wrong_one_is_refused() -> None:
    asked = {"prior_kl": 0.5, "hyperparameters": {"width": 32}, "recovery": {"share": 0.5}}
    with finished({"arm": "rl", "rl": asked}, env_steps=256, loop=SMALL | {"iterations": 0}) as reader:
        (config,) = reader.rows("rl_config")
        assert config["config"]["prior_kl"] == 0.5 and config["config"]["recovery"]["share"] == 0.0
        assert (config["config"]["hyperparameters"]["width"], config["config"]["hyperparameters"]["n_envs"]) == (32, 8)
        assert [run.state for run in reader.history_at().runs.values()] == ["finished"]
    for fields, sentence in (
        ({"prior_kl": -1}, r"method.rl.prior_kl: Input should be greater than or equal to 0 \(got -1\)"),
        ({"recovery": {"parts": 1}}, "method.rl.recovery.parts: Extra inputs are not permitted"),
        ({"fly": 1}, "method.rl.fly: Extra inputs"),
        ({"observation": ["fly"]}, "method.rl: The world corridor has no feature 'fly'$"),
        ({"primitives": ["fly"]}, "method.rl: The world corridor has no primitive 'fly'$"),
        ({"target": "fly"}, "method.rl: The task take_key has no milestone 'fly' to train for"),
        ({"reward": [{"term": "distance", "argument": "fly", "weight": 1}]}, "measures no distance to 'fly'$"),
    ):
        with pytest.raises(creation.CannotCreate, match=sentence):
            creation.create({"task": "take_key", "world": WORLD, "method": {"rl": fields}})


def test_a_wrong_field_that_a_fork_brings_is_a_sentence_where_it_is_used() -> None:
    reply = RlConfigReply(
        target="", observation=["any"], reward=[RewardTerm(term="task", weight=1.0)], primitives=[], options=[],
        horizon=10, env_steps=0,
    )  # fmt: skip
    with pytest.raises(AgentError, match=r"^method\.rl\.horizon: Input should be greater .* \(got -5\)$"):
        shared_by_arms(reply, MethodSettings(rl={"horizon": -5}), 100, 1)


def test_a_sub_action_without_code_that_no_plan_has_is_told_of() -> None:
    with finished({"arm": "code", "uncoded": ["take_key", "fly"]}, critic="none") as reader:
        (told,) = [row for row in reader.rows("log") if row["event"] == "uncoded"]
        assert told["level"] == "warning"
        assert told["fields"]["sentence"] == "the plan has no sub-action fly to leave without code"
        assert not reader.rows("code_version")


def test_every_pass_trains_afresh_where_warm_starts_are_off() -> None:
    with finished({"warm": False, "whole_budget": True, "plan": "fixed"}, env_steps=2048, loop=SMALL) as reader:
        runs = reader.rows("training_run")
        assert [(run["warm_from"], run["env_steps_planned"]) for run in runs] == [(None, 1024), (None, 1024)]
        plans = reader.rows("plan")
        assert len(plans) == 2 and [p["executor"] for p in plans] == ["policy", "policy"]
        assert "the previous plan is kept" in plans[1]["rationale"]
