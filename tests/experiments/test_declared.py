"""An experiment is fair by construction: its arms differ in what is declared and in nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlgpt.store import experiments
from rlgpt.store.experiments import NoExperiment, Planned
from rlgpt.store.settings import Settings, settle
from rlgpt.training.experiments.bill import Rate, bill
from rlgpt.training.experiments.declared import KINDS, Undeclared, declare, merged, trees
from rlgpt.training.session.creation import CannotCreate
from rlgpt.training.worlds import registry

BASE = {"budget": {"env_steps": 1000}, "loop": {"iterations": 3, "test_episodes": 10}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def leaves(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_every_session_of_an_experiment_has_settings_that_can_be(kind: str) -> None:
    if KINDS[kind].world == "kitchen":
        pytest.importorskip("mujoco")
    world = registry.get(KINDS[kind].world)
    for task, arm, seed, tree in trees(kind, BASE | {"world": world.name}, [], [0, 1]):
        settings = settle(tree)
        assert (settings.task, settings.method.label, settings.seed, settings.skills) == (task, arm, seed, "none")
        assert task in world.tasks and settings.budget.env_steps == 1000


@pytest.mark.parametrize("kind", KINDS)
def test_arms_share_the_budget_the_task_the_seed_and_the_loop_but_for_what_makes_the_arm(kind: str) -> None:
    varied = {
        "arms": {"method.arm", "method.controls", "loop.iterations", "loop.inner"},
        "blind": {"method.arm", "method.controls", "method.reward", "loop.iterations", "loop.inner"},
        "iterations": {"loop.iterations", "loop.inner", "loop.depth", "critic"},
        "critic": {"critic"},
        "fast": {"loop.inner"},
        "slow": {"method.plan"},
        "interface": {"method.arm", "method.reward", "loop.iterations"},
        "complexity": {"method.arm", "loop.iterations", "loop.inner"},
        "learner": {
            "method.controls",
            "method.rl.prior_kl",
            "method.rl.recovery.share",
            "method.rl.recovery.only_in_trouble",
            "method.rl.branches.decisions",
        },
        "coverage": {"method.arm", "method.uncoded", "loop.iterations"},
    }
    found = [leaves(settle(tree).model_dump()) for _, _, _, tree in trees(kind, BASE, ["collect_iron"], [3])]
    keys = {key for one in found for key in one}
    differing = {key for key in keys if len({repr(one.get(key)) for one in found}) > 1}
    assert differing == varied[kind] | {"method.label"}


def test_coverage_leaves_out_none_each_and_some_of_the_chain_in_both_arms_and_always_the_same() -> None:
    made = trees("coverage", BASE, ["make_stone_pickaxe"], [0, 1])
    chain = ["collect_wood", "place_table", "make_wood_pickaxe", "collect_stone", "make_stone_pickaxe"]
    methods = [tree["method"] for _, _, seed, tree in made if seed == 0]
    assert methods == [tree["method"] for _, _, seed, tree in made if seed == 1]
    missing = {arm: [m["uncoded"] for m in methods if m["arm"] == arm and "uncoded" in m] for arm in ("rlgpt", "code")}
    assert missing["rlgpt"] == missing["code"] and missing["code"][:6] == [[], *([name] for name in chain)]
    assert [len(names) for names in missing["code"][6:]] == [2, 2, 3, 3, 4, 4]
    assert len({tuple(names) for names in missing["code"]}) == 12 and methods[-1]["arm"] == "rl"
    labels = [m["label"] for m in methods]
    assert labels[:4] == ["rlgpt", "code", "rlgpt without 1", "code without 1"] and len(set(labels)) == 25
    assert {m["reward"] for m in methods} == {"designed"}
    other = trees("coverage", BASE | {"method": {"reward": "success"}}, ["make_stone_pickaxe"], [0])
    assert {tree["method"]["reward"] for *_, tree in other} == {"success"}


def test_the_names_of_the_longest_chain_fit_a_label() -> None:
    for task in ("collect_iron", "collect_diamond", "eat_plant"):
        assert [settle(tree).method.label for *_, tree in trees("coverage", BASE, [task], [0])]


def test_the_same_seeds_are_used_for_every_arm_and_the_first_seed_is_whole_first() -> None:
    made = trees("arms", BASE, ["collect_iron", "wake_up"], [0, 1])
    assert [seed for _, _, seed, _ in made] == [0] * 6 + [1] * 6
    assert {(task, arm) for task, arm, _, _ in made[:6]} == {(task, arm) for task, arm, _, _ in made[6:]}


def test_another_reward_takes_the_place_of_the_one_that_arms_share() -> None:
    base = BASE | {"method": {"reward": "success"}}
    for kind, shared in (
        ("arms", {"success"}), ("interface", {"success", "designed"}), ("blind", {"success", "designed"})
    ):  # fmt: skip
        made = [settle(tree).method for _, _, _, tree in trees(kind, base, ["survive_night"], [0])]
        assert {method.reward for method in made} == shared and all(m.whole_budget for m in made)


def test_an_experiment_that_cannot_be_says_why() -> None:
    with pytest.raises(Undeclared, match="there are arms, blind"):
        trees("everything", {}, [], [0])
    with pytest.raises(Undeclared, match="name the tasks of minedojo"):
        trees("arms", {"world": "minedojo"}, [], [0])
    with pytest.raises(Undeclared, match="it needs --llm rules"):
        trees("coverage", {"llm": {"kind": "openai"}}, ["collect_iron"], [0])
    with pytest.raises(Undeclared, match="no chain of sub-actions to collect_wood"):
        trees("coverage", {}, ["collect_wood"], [0])
    with pytest.raises(CannotCreate, match="no task 'fly'"):
        trees("coverage", {}, ["fly"], [0])
    with pytest.raises(CannotCreate, match=r"`rlgpt tasks --world tests\.worlds\.corridor:make_world` lists them"):
        trees("coverage", {"world": "tests.worlds.corridor:make_world"}, ["fly"], [0])
    with pytest.raises(Undeclared, match="named twice"):
        trees("arms", {}, ["wake_up", "wake_up"], [0])


def test_some_arms_of_an_experiment_are_run_in_its_own_order() -> None:
    chosen = trees("arms", {}, ["wake_up"], [0, 1], ["code", "rlgpt"])
    assert [(arm, seed) for _, arm, seed, _ in chosen] == [("rlgpt", 0), ("code", 0), ("rlgpt", 1), ("code", 1)]
    every = trees("arms", {}, ["wake_up"], [0])
    assert [tree for _, arm, _, tree in every if arm != "rl"] == [tree for *_, tree in chosen[:2]]
    with pytest.raises(Undeclared, match="arms has no arm 'rlgtp'; it has rlgpt, code, rl"):
        trees("arms", {}, ["wake_up"], [0], ["rlgtp"])
    with pytest.raises(Undeclared, match="code is named twice"):
        trees("arms", {}, ["wake_up"], [0], ["code", "code"])


def test_a_task_may_be_called_as_an_arm_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgpt.training.experiments.declared._defaults", lambda declared, world: ["rl"])
    assert {task for task, *_ in trees("arms", {}, [], [0], ["rl"])} == {"rl"}


def test_trees_lie_over_each_other_and_none_is_changed() -> None:
    low, high = {"a": {"b": 1, "c": [1, 2]}, "d": 4}, {"a": {"c": [3]}, "e": {"f": 5}}
    assert merged(low, high) == {"a": {"b": 1, "c": [3]}, "d": 4, "e": {"f": 5}}
    assert low == {"a": {"b": 1, "c": [1, 2]}, "d": 4}


def test_a_declared_experiment_goes_on_where_it_was_left() -> None:
    first = declare("critic", "", BASE, ["wake_up"], [0, 1])
    first.save()
    first.made(first.sessions[0], "s1")
    again = declare("critic", "critic-wake_up", BASE, ["wake_up"], [0, 1])
    assert again == first and [p.id for p in again.sessions] == ["s1", "", "", ""]


def test_another_experiment_under_the_same_name_is_refused() -> None:
    declare("critic", "mine", BASE, ["wake_up"], [0]).save()
    for kind, seeds, base in (("slow", [0], BASE), ("critic", [0, 1], BASE), ("critic", [0], {})):
        with pytest.raises(Undeclared, match="choose another --name"):
            declare(kind, "mine", base, ["wake_up"], seeds)
    with pytest.raises(Undeclared, match="other tasks, arms, seeds or settings"):
        declare("critic", "mine", BASE, ["wake_up"], [0], ["no critic"])
    with pytest.raises(NoExperiment, match="no name"):
        declare("critic", "../x", BASE, ["wake_up"], [0])


def test_a_damaged_declaration_says_so(home: Path) -> None:
    made = declare("critic", "mine", BASE, ["wake_up"], [0])
    made.save()
    for text in ("{", "[]", "{}", '{"format": 1, "sessions": [{"task": "t"}]}', '{"format": 1, "sessions": 3}'):
        made.path.write_text(text)
        with pytest.raises(NoExperiment, match="cannot be read"):
            experiments.load(made.path)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "Invalid JSON"),
        (b"\xff\xfe", "Invalid JSON"),
        (b"[" * 10_000, "recursion limit"),
        (b'"text"', "should be an object"),
        (b'{"format": 2}', "another version"),
        (b'{"format": 1}', "name: Field required"),
        (b'{"format": 1, "name": "x", "kind": "critic", "about": "", "sessions": [3]}', "sessions.0: "),
        (b'{"format": 1, "name": "../y", "kind": "critic", "about": "", "sessions": []}', "of another experiment"),
        (
            b'{"format": 1, "name": "x", "kind": "critic", "about": "", "sessions": '
            b'[{"task": "wake_up", "arm": "rlgpt", "seed": 0, "settings": {}, "id": "../../home"}]}',
            "no id of a session",
        ),
    ],
)
def test_a_declaration_that_somebody_edited_is_a_sentence(home: Path, body: bytes, sentence: str) -> None:
    path = home / "experiments" / "x" / "experiment.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(body)
    with pytest.raises((Undeclared, NoExperiment), match=sentence):
        declare("critic", "x", BASE, ["wake_up"], [0])


def planned(**fields: Any) -> tuple[Planned, Settings, int]:
    settings = Settings.model_validate({"task": "t", "budget": {"env_steps": 36_000}} | fields)
    return Planned("t", "a", 0, {}), settings, 0


def test_the_bill_counts_what_is_left_and_divides_the_hours_by_the_jobs() -> None:
    one, other = planned(), planned()
    found = bill([one, (*other[:2], 18_000)], 2, Rate(10.0, "a test"))
    assert (found["sessions"], found["env_steps"]) == (2, 54_000)
    assert found["hours"] == pytest.approx(54_000 / 10 / 2 / 3600)
    assert bill([one], 8, Rate(10.0, ""))["hours"] == pytest.approx(1.0)
    assert (found["usd"], found["calls"]) == (0.0, 0)


def test_the_bill_of_a_language_model_is_its_price_and_never_above_the_budgets() -> None:
    asked = planned(llm={"kind": "openai", "model": "gpt-4o"}, loop={"iterations": 1})
    found = bill([asked, asked], 1, Rate(10.0, ""))
    assert found["usd"] == pytest.approx(2 * 2 * 27 * (4000 * 2.5 + 700 * 10) / 1e6, abs=0.01)
    assert found["usd_at_most"] == 10.0
    unknown = bill([planned(llm={"kind": "openai", "model": "mine"})], 1, Rate(10.0, ""))
    assert unknown["usd"] is None and unknown["unpriced"] == ["mine"]


def test_the_bill_knows_the_prices_of_the_settings_and_of_the_roles() -> None:
    def usd(**llm: Any) -> float | None:
        asked = planned(llm={"kind": "openai", "model": "gpt-4o"} | llm, loop={"iterations": 1})
        return bill([asked], 1, Rate(10.0, ""))["usd"]  # type: ignore[no-any-return]

    assert usd(price_in=0, price_out=0) == 0.0
    assert usd(model="mine", base_url="http://localhost:1/v1", price_in=1, price_out=0) == pytest.approx(0.22, abs=0.01)
    assert usd(model="gpt-5-nano", roles={"fast": {"model": "gpt-5"}}) > 10 * usd(model="gpt-5-nano")


def test_the_bill_counts_the_three_ways_in_which_a_policy_is_played_in_development() -> None:
    loop = {"iterations": 0, "dev_first": 300, "dev_more": 0, "test_episodes": 1}
    assert bill([planned(loop=loop)], 1, Rate(10.0, ""))["episodes_evaluated"] == 905
