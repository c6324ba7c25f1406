"""No field of the RL configuration is decoration: two that differ only there give something different."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.agents.contracts import Hyperparameters
from rlgpt.training.host.api import Action, PlanItem, source_hash
from rlgpt.training.options.observer import Observer
from rlgpt.training.options.slots import ActionSpaceError
from rlgpt.training.ppo.checkpoints import unpack
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.setup import ConfigError, build_setup, require_affordable
from rlgpt.training.session.creation import CannotCreate, check_rl_fields
from tests.options.toys import FOREVER, GET_KEY, USE, WALK, ChangedEnv, ChangedWorld, code, configuration, host_of, term

FIRST = "def reward(before, view):\n    return 1.0\n"
SECOND = "def reward(before, view):\n    return float(view.position)\n"
OPTIONS = (code(WALK), code(USE), code(FOREVER))
PLAN = (PlanItem("view.key", Action(source_hash(GET_KEY))),)
SOURCES = {source_hash(source): source for source in (GET_KEY, FIRST, SECOND)}


class Rows(Observer):
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def on_update(self, metrics: dict[str, Any]) -> None:
        self.rows.append({key: value for key, value in metrics.items() if key != "rate"})


@pytest.fixture(autouse=True)
def _imitate_at_every_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgpt.training.ppo.imitation.PASS_EVERY", 1)


KNOWN: dict[str, tuple[list[dict[str, Any]], bytes, Any]] = {}


def _run(**changes: Any) -> tuple[list[dict[str, Any]], bytes, Any]:
    """Equal configurations are trained once (test_resume.py shows that they would give the same)."""
    if repr(changes) not in KNOWN:
        KNOWN[repr(changes)] = _train(changes)
    return KNOWN[repr(changes)]


def _train(changes: dict[str, Any]) -> tuple[list[dict[str, Any]], bytes, Any]:
    world = ChangedWorld()
    rows = Rows()
    base: dict[str, Any] = {"options": ["walk", "use_it", "forever"], "env_steps": 384}
    result = train(
        world, "take_coin", configuration(**base | changes), OPTIONS, host_of(world), seed=2, device="cpu",
        plan=PLAN, sources=SOURCES, observer=rows,
    )  # fmt: skip
    return rows.rows, result.checkpoint, result.start


def _parameters(blob: bytes) -> dict[str, bytes]:
    return {key: array.tobytes() for key, array in unpack(blob).arrays.items() if key.startswith("policy/")}


ALIKE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "target": ({}, {"target": "take_key"}),
    "observation": ({}, {"observation": ["position", "cell"]}),
    "reward term": ({}, {"reward": [term("world")]}),
    "reward weight": ({}, {"reward": [term("task", 5.0)]}),
    "reward argument of distance": (
        {"reward": [term("distance", argument="key")]}, {"reward": [term("distance", argument="coin")]},
    ),
    "reward argument of milestone": (
        {"reward": [term("milestone", argument="take_key")]}, {"reward": [term("milestone", argument="open_door")]},
    ),
    "reward argument of generated": (
        {"reward": [term("generated", argument=source_hash(FIRST))]},
        {"reward": [term("generated", argument=source_hash(SECOND))]},
    ),
    "reward step": ({"reward": [term("task")]}, {"reward": [term("task"), term("step", -0.1)]}),
    "primitives": ({}, {"primitives": ["right", "use"]}),
    "options": ({}, {"options": ["walk", "use_it"]}),
    "follow_plan": ({}, {"options": ["walk", "use_it", "forever", "follow_plan"]}),
    "option_prior": ({}, {"option_prior": 0.2}),
    "plan_prior": (
        {"options": ["walk", "follow_plan"]}, {"options": ["walk", "follow_plan"], "plan_prior": 0.4},
    ),
    "prior_kl": ({}, {"prior_kl": 0.5}),
    "option_cap": ({}, {"option_cap": 2}),
    "primitive_steps": ({}, {"primitive_steps": 2}),
    "horizon": ({}, {"horizon": 20}),
    "env_steps": ({}, {"env_steps": 128}),
    "self_imitation mode": ({"self_imitation": {"mode": "paper"}}, {"self_imitation": {"mode": "oh2018"}}),
    "self_imitation": ({}, {"self_imitation": {"mode": "paper"}}),
    "self_imitation weight": (
        {"self_imitation": {"mode": "oh2018"}}, {"self_imitation": {"mode": "oh2018", "weight": 3.0}},
    ),
    "recovery share": (
        {"options": ["walk", "follow_plan"]}, {"options": ["walk", "follow_plan"], "recovery": {"share": 0.5}},
    ),
    "recovery only_in_trouble": (
        {"options": ["walk", "follow_plan"]},
        {"options": ["walk", "follow_plan"], "recovery": {"only_in_trouble": True}},
    ),
    "branches decisions": ({}, {"branches": {"decisions": 4}}),
    "branches repeats": ({"branches": {"decisions": 9}}, {"branches": {"decisions": 9, "repeats": 2}}),
    "branches env_steps": ({"branches": {"decisions": 4}}, {"branches": {"decisions": 4, "env_steps": 5}}),
    "learning_rate": ({}, {"hyper": {"learning_rate": 1e-3}}),
    "gamma": ({}, {"hyper": {"gamma": 0.9}}),
    "gae_lambda": ({}, {"hyper": {"gae_lambda": 0.5}}),
    "clip_range": ({"hyper": {"clip_range": 0.2, "learning_rate": 0.01}},
                   {"hyper": {"clip_range": 0.01, "learning_rate": 0.01}}),
    "ent_coef": ({}, {"hyper": {"ent_coef": 0.1}}),
    "n_epochs": ({}, {"hyper": {"n_epochs": 3}}),
    "batch_size": ({}, {"hyper": {"batch_size": 32}}),
    "n_envs": ({}, {"hyper": {"n_envs": 3}}),
    "n_steps": ({}, {"hyper": {"n_steps": 32}}),
    "target_kl": ({"hyper": {"learning_rate": 0.01, "target_kl": None}},
                  {"hyper": {"learning_rate": 0.01, "target_kl": 0.001}}),
    "vf_coef": ({}, {"hyper": {"vf_coef": 2.0}}),
    "max_grad_norm": ({}, {"hyper": {"max_grad_norm": 0.01}}),
    "width": ({}, {"hyper": {"width": 32}}),
}  # fmt: skip


@pytest.mark.parametrize("field", ALIKE)
def test_the_field_changes_what_is_learnt(field: str) -> None:
    first, second = ALIKE[field]
    assert _parameters(_run(**first)[1]) != _parameters(_run(**second)[1])


def test_the_note_changes_nothing() -> None:
    rows, blob, _ = _run()
    again, other, _ = _run(note="why")
    assert rows == again and _parameters(blob) == _parameters(other)


def test_a_target_before_the_goal_ends_episodes_with_success() -> None:
    goal, _, _ = _run()
    key, _, _ = _run(target="take_key")
    assert sum(r["successes"] for r in key) > sum(r["successes"] for r in goal)
    assert all("open_door" not in row["milestones"] for row in key)


def test_the_horizon_shortens_the_tasks_but_cannot_lengthen_it() -> None:
    short, _, _ = _run(horizon=20)
    long, _, _ = _run(horizon=20_000)
    assert max(row["length_mean"] or 0 for row in short) <= 20
    assert 20 < max(row["length_mean"] or 0 for row in long) <= 60


def test_the_device_kernel_and_priors_are_told_before_the_first_step() -> None:
    start = _run(options=["walk", "use_it"])[2]
    assert (start.device, start.explanation) == ("cpu", "cpu was asked for.")
    assert start.kernel
    assert [(s["name"], s["prior"]) for s in start.slots] == [("walk", 0.25), ("use_it", 0.25)]


def test_an_unknown_target_or_source_is_a_sentence() -> None:
    with pytest.raises(ConfigError, match="no milestone 'fly' to train for"):
        _run(target="fly")
    with pytest.raises(ConfigError, match="source abc is named by the configuration but was not given"):
        _run(reward=[term("generated", argument="abc")])


def test_a_rollout_that_may_exhaust_memory_or_budget_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def affordable(env_steps: int, **changes: Any) -> None:
        require_affordable(
            build_setup(ChangedWorld(), "take_coin", configuration(**changes), [], [], {}, []), env_steps
        )

    most = {"n_envs": 64, "n_steps": 131_072}
    monkeypatch.setattr("rlgpt.training.ppo.setup.MOST_BYTES", 1 << 20)
    affordable(4096, hyper=most)  # the training has no longer rollout than its env steps
    with pytest.raises(ConfigError, match=r"A rollout of 8388608 env steps .* at most \d+ env steps"):
        affordable(100_000_000, hyper=most)
    affordable(40_000, branches={"decisions": 16})
    with pytest.raises(ConfigError, match=r"may take 7680 env steps .* a quarter of the training's 30000"):
        affordable(30_000, branches={"decisions": 16})


def test_hyperparameters_recorded_by_their_earlier_names_are_read() -> None:
    recorded = {"epochs": 8, "entropy": 0.02, "value_coefficient": 0.4, "rollout_env_steps": 4096, "n_envs": 16}
    expected = Hyperparameters(n_epochs=8, ent_coef=0.02, vf_coef=0.4, n_steps=256, n_envs=16)
    assert Hyperparameters.model_validate(recorded) == expected


class Unrestorable(ChangedWorld):
    restorable = False


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"branches": {"decisions": 4}}, "branches and recovery need a world that can be restored"),
        ({"recovery": {"share": 0.5}}, "branches and recovery need a world that can be restored"),
        ({"plan_prior": 0.9, "option_prior": 0.2}, "plan_prior and option_prior together must stay below 1"),
    ],
)
def test_what_no_training_could_begin_with_is_refused_before_a_session_is_made(fields: Any, why: str) -> None:
    with pytest.raises(CannotCreate, match=why):
        check_rl_fields(fields, Unrestorable(), "open_door")
    check_rl_fields({"plan_prior": 0.5, "option_prior": 0.2}, Unrestorable(), "open_door")


def test_a_training_that_cannot_begin_closes_its_games(monkeypatch: pytest.MonkeyPatch) -> None:
    open_games: list[object] = []
    make, close = ChangedWorld.make, ChangedEnv.close

    def make_one(world: ChangedWorld, *args: Any, **more: Any) -> ChangedEnv:
        open_games.append(env := make(world, *args, **more))
        return env

    def close_one(env: ChangedEnv) -> None:
        open_games.remove(env)
        close(env)

    monkeypatch.setattr(ChangedWorld, "make", make_one)
    monkeypatch.setattr(ChangedEnv, "close", close_one)
    config = configuration(options=["walk", "follow_plan"], plan_prior=0.9, option_prior=0.24)
    world = ChangedWorld()
    with pytest.raises(ActionSpaceError, match="leave no probability for the rest"):
        train(
            world, "open_door", config, [code(WALK)], host_of(world), seed=1, device="cpu", plan=PLAN, sources=SOURCES
        )
    assert not open_games
