"""Settings: flags over the environment over the files, one sentence for what cannot be, no secret kept."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

import pytest

from rlgpt.store.errors import BadSchema
from rlgpt.store.settings import Refused, settle, stored


@pytest.fixture(autouse=True)
def clean(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_flags_win_over_the_environment_over_the_folder_over_home(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "rlgpt.toml").write_text("seed = 1\nreview_timeout = 5\nreview = true\n[loop]\niterations = 1\ninner = 7\n")
    (tmp_path / "rlgpt.toml").write_text("seed = 2\nreview_timeout = 2\n[loop]\niterations = 2\n")
    monkeypatch.setenv("RLGPT_SEED", "3")
    monkeypatch.setenv("RLGPT_LOOP__ITERATIONS", "4")
    made = settle({"task": "collect_iron", "loop": {"iterations": 9}})
    assert (made.loop.iterations, made.seed, made.review_timeout, made.loop.inner) == (9, 3, 2, 7)
    assert made.review and made.world == "crafter"


def test_stored_settings_are_taken_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    made = settle({"task": "collect_iron", "seed": 4, "llm": {"roles": {"critic": {"model": "small"}}}})
    monkeypatch.setenv("RLGPT_SEED", "9")
    assert stored(made.model_dump(mode="json")) == made
    older = {"n_envs": None, "threads": 1}
    assert stored(made.model_dump(mode="json") | older) == made
    with pytest.raises(Refused, match="no setting called threads"):
        settle({"task": "collect_iron", "threads": 2})


def test_settings_of_a_newer_version_are_a_sentence_of_the_store() -> None:
    """Of an imported session: whoever reads many sessions goes on without it."""
    made = settle({"task": "collect_iron"}).model_dump(mode="json")
    with pytest.raises(BadSchema, match=r"perhaps of a newer one: there is no setting called foresight"):
        stored(made | {"foresight": 3})


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({}, "task is missing"),
        ({"task": "x", "sede": 3}, "there is no setting called sede"),
        ({"task": "x", "budget": {"cost": -1}}, r"budget.cost should be greater than or equal to 0 \(got -1\)"),
        ({"task": "x", "name": "last"}, "that word stands for the newest one"),
        ({"task": "x", "name": "x" * 101}, "at most 100 letters, not 101"),
        ({"task": "x", "seed": "many"}, r"seed should be a valid integer.*\(got 'many'\)"),
        ({"task": "x", "device": "tpu"}, "device should be 'auto', 'cpu' or 'cuda'"),
        ({"task": "x", "llm": {"kind": "magic"}}, "llm.kind should match"),
        ({"task": "x", "skills": "some"}, "skills should match"),
        ({"task": "x", "loop": {"target": 2}, "review_timeout": 0}, "review_timeout .*; loop.target "),
        ({"task": "x", "llm": {"base_url": "localhost:8000"}}, "llm.base_url must begin with http"),
        ({"task": "x", "llm": {"base_url": "http://box:99999/v1"}}, "llm.base_url has no port that can be"),
        ({"task": "x", "llm": {"base_url": "http://a..b/v1"}}, "llm.base_url is no address"),
        ({"task": "x", "llm": {"base_url": "http://["}}, "llm.base_url is no address"),
        ({"task": "x", "llm": {"base_url": "http://box/a b"}}, "llm.base_url must hold no space"),
        ({"task": "x", "llm": {"timeout": math.inf}}, "llm.timeout should be a finite number"),
        ({"task": "x", "llm": {"price_in": math.nan}}, "llm.price_in should be a finite number"),
        ({"task": "x", "llm": {"extra": {"a": [math.nan]}}}, "llm.extra must hold nothing that JSON does not"),
        ({"task": "x", "llm": {"extra": {"a": date(2026, 1, 1)}}}, "llm.extra must hold nothing that JSON does not"),
        ({"task": "x", "llm": {"timeout": 1e300}}, "llm.timeout should be less than or equal to"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(flags: dict[str, object], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence) as caught:
        settle(flags)
    assert "\n" not in str(caught.value)


def test_a_wrong_variable_or_file_is_one_sentence_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_LOOP__ITERATION", "4")
    with pytest.raises(Refused, match=r"there is no setting called loop\.iteration; did you mean loop\.iterations\?"):
        settle({"task": "x"})
    monkeypatch.delenv("RLGPT_LOOP__ITERATION")
    for wrong in ("seed = = 3", "seed = " + "[" * 100_000):
        (tmp_path / "rlgpt.toml").write_text(wrong)
        with pytest.raises(Refused, match=r"rlgpt.toml cannot be read"):
            settle({"task": "x"})


def test_a_file_that_an_editor_of_windows_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / "rlgpt.toml").write_bytes("\ufeffseed = 3\r\n".encode())
    assert settle({"task": "x"}).seed == 3


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("RLGPT_SED", "RLGPT_SEED"),
        ("RLGPT_DEVIC", "RLGPT_DEVICE"),
        ("rlgpt_budgt__cost", "RLGPT_BUDGET__COST"),
        ("RLGPT_ITERATIONS", "RLGPT_LOOP__ITERATIONS"),
        ("RLGPT_REVIEW__TIMEOUT", "RLGPT_REVIEW_TIMEOUT"),
    ],
)
def test_a_mistyped_variable_is_refused_with_the_nearest_name(
    name: str, nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(Refused, match=rf"the variable {name} is no setting of rlgpt: did you mean {nearest}\?"):
        settle({"task": "x"})


def test_variables_of_ours_that_are_no_settings_and_the_key_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RLGPT_HOME", "RLGPT_NUMBA", "RLGPT_MINEDOJO_PYTHON", "RLGPT_MY_KEY", "XRLGPT_SED"):
        monkeypatch.setenv(name, "0")
    assert settle({"task": "x", "llm": {"api_key_env": "RLGPT_MY_KEY"}}).task == "x"


@pytest.mark.parametrize(
    "url",
    [
        "https://me:hunter2@host/v1",
        "https://host/v1?api_key=hunter2",
        "https://host/v1?sig=hunter2",
        "http://hunter2@h",
    ],
)
@pytest.mark.parametrize("where", ["all", "role"])
def test_a_url_with_a_key_in_it_is_neither_stored_nor_shown(url: str, where: str) -> None:
    llm = {"base_url": url} if where == "all" else {"roles": {"slow": {"base_url": url}}}
    with pytest.raises(Refused, match="base_url must hold no key or password") as caught:
        settle({"task": "x", "llm": llm})
    assert "hunter2" not in str(caught.value)


def test_a_key_comes_from_the_environment_and_stays_out_of_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "hunter2")
    made = settle(
        {
            "task": "x",
            "llm": {"kind": "openai", "api_key_env": "MY_KEY", "base_url": "http://box:8000/v1?api-version=3"},
        }
    )
    assert made.llm.api_key_env == "MY_KEY" and "hunter2" not in made.model_dump_json()


def test_extra_parameters_replace_nothing_of_ours_and_hold_no_key() -> None:
    for extra, said in (({"messages": []}, "may not set messages"), ({"api_key": "k"}, "must hold no key")):
        with pytest.raises(Refused, match=said):
            settle({"task": "x", "llm": {"extra": extra}})
        with pytest.raises(Refused, match=said):
            settle({"task": "x", "llm": {"roles": {"slow": {"extra": extra}}}})


def test_a_provider_means_a_language_model() -> None:
    assert settle({"task": "x", "llm": {"provider": "ollama"}}).llm.kind == "openai"
    assert settle({"task": "x", "llm": {"provider": "ollama", "kind": "rules"}}).llm.kind == "rules"
    assert settle({"task": "x"}).llm.kind == "rules"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tools", "may not set tools, which rlgpt sets itself"),
        ("max_tokens", "may not set max_tokens, which rlgpt sets itself: --max-tokens-per-call gives it"),
    ],
)
def test_extra_parameters_may_not_replace_what_rlgpt_counts_with(name: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        settle({"task": "collect_iron", "llm": {"extra": {name: 1}}})
