"""Trials on the corridor: arrival, acceptance, vacuity, evidence."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from rlgpt.store import tables
from rlgpt.training.host.api import Action, source_hash
from rlgpt.training.options.observer import Observer, Signal
from rlgpt.training.ppo.run import train
from rlgpt.training.ppo.trained import load_policy
from rlgpt.training.rollouts.partial_trial import PartialTrial
from rlgpt.training.rollouts.trial_result import TrialResult, run_lengths
from rlgpt.training.rollouts.trials import PrefixItem, try_item
from rlgpt.training.seeds import episode_seed
from rlgpt.training.steps.coding import affordable_env_steps
from tests.options.toys import (
    BACK,
    FAILS,
    GET_KEY,
    LATE,
    NOTHING,
    OPEN_DOOR,
    WALK,
    ChangedWorld,
    code,
    configuration,
    host_of,
)  # fmt: skip

WORLD = ChangedWorld()
SEEDS = [episode_seed(1, "trial", index) for index in range(10)]
NEAR_ONLY = 'def near_only(view):\n    for _ in range({}):\n        view = yield "right"\n    yield "use"\n'
KEY_AT_2 = NEAR_ONLY.format(2)
"""Takes only keys that lie at 2; three steps further it runs past."""
TAKES_AT_1 = 'def takes_at_1(view):\n    view = yield "right"\n    view = yield "use"\n    view = yield "right"\n'
SOURCES = {source_hash(s): s for s in (TAKES_AT_1, GET_KEY, OPEN_DOOR, WALK, BACK, FAILS, LATE, NOTHING, KEY_AT_2)}
KEY = PrefixItem("view.key", Action(source_hash(GET_KEY)))


def _try(source: str, done_when: str, prefix: tuple[PrefixItem, ...] = (), **more: Any) -> TrialResult:
    given: dict[str, Any] = {"seeds": SEEDS, "max_steps": 20, "host": host_of(WORLD), "sources": SOURCES}
    return try_item(
        WORLD, "take_coin", prefix=prefix, action=Action(source_hash(source)), done_when=done_when, **given | more
    )


def _key_at(*cells: int) -> list[int]:
    """Ten trial seeds whose keys lie at these cells, in turn."""
    pools: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for seed in range(200):
        pools[Random(seed).choice((1, 2, 3))].append(seed)
    return [pools[cell].pop() for cell in cells]


def test_what_works_is_accepted_after_five() -> None:
    result = _try(GET_KEY, "view.key")
    assert (result.outcome, result.episodes, result.successes, result.prefixes) == ("accepted", 5, 5, 5)
    assert result.env_steps == sum(t["env_steps"] for t in result.trials)
    assert result.evidence["bad"] is None


def test_it_is_tried_behind_its_prefix_whose_env_steps_are_charged() -> None:
    result = _try(OPEN_DOOR, "view.opened", (KEY,))
    assert result.outcome == "accepted"
    assert result.env_steps > sum(t["env_steps"] for t in result.trials)
    assert all(t["arrived"] for t in result.trials)
    before = result.evidence["good"]["before"]
    assert before["key"] and not before["opened"]


def test_an_open_result_is_tried_five_times_more_and_sixty_percent_accept() -> None:
    def outcome(first: int, second: int) -> tuple[str, int, int]:
        cells = [2] * first + [1] * (5 - first) + [2] * second + [1] * (5 - second)
        result = _try(KEY_AT_2, "view.key", seeds=_key_at(*cells), max_steps=3)
        return result.outcome, result.successes, result.episodes

    assert outcome(5, 0) == ("accepted", 5, 5)
    assert outcome(4, 2) == ("accepted", 6, 10)
    assert outcome(2, 4) == ("accepted", 6, 10)
    assert outcome(4, 1) == ("failed", 5, 10)
    assert outcome(1, 5) == ("failed", 1, 5)


def test_a_predicate_that_holds_in_every_start_state_is_vacuous() -> None:
    result = _try(WALK, "view.position >= 0")
    assert result.outcome == "vacuous" and "already true in 10 of 10 start states" in result.error
    assert (result.episodes, result.successes) == (0, 0)


def test_where_a_trigger_and_done_when_hold_together_both_are_named() -> None:
    result = _try(WALK, "view.position >= 0", trigger="view.position >= 0")
    assert result.outcome == "vacuous" and "in 10 of 10 states in which its trigger holds" in result.error
    assert "either the trigger holds where there is nothing to do, or done_when is true too early" in result.error


def test_a_predicate_is_not_vacuous_because_it_held_in_the_one_state_that_was_reached() -> None:
    before = PrefixItem("view.key", Action(source_hash(KEY_AT_2)))

    def outcome(*cells: int) -> tuple[str, str]:
        result = _try(WALK, "view.position >= 0", (before,), seeds=_key_at(*cells), max_steps=3)
        return result.outcome, result.error

    assert outcome(2, 1, 1, 1) == ("unreached", "only 0 of 4 trials reached a state in which the plan needs it")
    assert outcome(2, 2, 2, 1) == ("vacuous", "done_when was already true in 3 of 3 start states")


def test_only_states_that_need_the_item_say_something_about_it() -> None:
    passing = PrefixItem("view.position >= 2", Action(source_hash(TAKES_AT_1)))
    result = _try(GET_KEY, "view.key", (passing,), seeds=_key_at(1, 1, 1, 1, 1, 3, 3, 3, 3))
    assert (result.outcome, result.successes, result.episodes, result.prefixes) == ("accepted", 4, 4, 9)
    assert result.evidence["good"]["before"]["key"] is False


def test_an_episode_that_ends_because_the_task_is_achieved_is_no_failure() -> None:
    result = try_item(
        WORLD, "take_key", prefix=(), action=Action(source_hash(GET_KEY)), done_when="view.position > 100",
        sources=SOURCES, host=host_of(WORLD), seeds=SEEDS, max_steps=20,
    )  # fmt: skip
    assert (result.outcome, result.successes) == ("accepted", 5)
    outlived = try_item(
        WORLD, "survive", prefix=(), action=Action(source_hash(BACK)), done_when="view.position > 100",
        sources=SOURCES, host=host_of(WORLD), seeds=SEEDS, max_steps=20,
    )  # fmt: skip
    assert outlived.outcome == "failed", "being there at the end is not what it was called for"


def test_a_prefix_that_does_not_arrive_is_no_failure_of_the_item() -> None:
    lost = PrefixItem("view.coin", Action(source_hash(WALK)))
    result = _try(GET_KEY, "view.key", (lost,))
    assert (result.outcome, result.episodes, result.prefixes) == ("unreached", 0, 10)
    assert "only 0 of 10" in result.error
    assert result.env_steps == 10 * 60


def test_more_prefixes_than_usual_are_run_where_their_env_steps_are_affordable() -> None:
    before = PrefixItem("view.key", Action(source_hash(KEY_AT_2)))
    one_in_nine = _key_at(*([1] * 8 + [2]) * 6)

    def tried(affordable: int) -> tuple[str, int, int]:
        result = _try(OPEN_DOOR, "view.opened", (before,), seeds=one_in_nine, max_steps=30, affordable=affordable)
        return result.outcome, result.episodes, result.prefixes

    assert tried(0) == ("unreached", 2, 20), "as many as always"
    assert tried(10**6) == ("accepted", 5, 45), "until five states were found"
    outcome, episodes, prefixes = tried(20 * 60 + 1)
    assert outcome == "unreached" and episodes < 3 and 20 < prefixes < 45, "until the env steps are spent"


def test_an_error_ends_the_trial_and_is_told() -> None:
    result = _try(LATE, "view.key")
    assert result.outcome == "failed" and result.error == "ZeroDivisionError: no"
    assert {(t["end"], t["message"]) for t in result.trials} == {("error", "ZeroDivisionError: no")}
    bad = result.evidence["bad"]
    assert (bad["end"], bad["yields"]) == ("error", ["right"])
    assert bad["difference"] == {"position": [0, 1], "steps_left": [60, 59]}


def test_code_that_does_nothing_is_not_called_for_ever() -> None:
    result = _try(NOTHING, "view.key", max_steps=60)
    assert {t["end"] for t in result.trials} == {"idle"}
    assert all(t["env_steps"] <= 6 for t in result.trials)


def test_a_trial_spends_no_more_than_its_env_steps() -> None:
    result = _try(BACK, "view.key", max_steps=4)
    assert all(t["env_steps"] <= 4 for t in result.trials)
    assert {t["end"] for t in result.trials} <= {"time", "idle"}


def test_a_success_is_seen_as_soon_as_it_holds() -> None:
    result = _try(WALK, "view.position == 2")
    assert {t["env_steps"] for t in result.trials} == {2}


def test_a_learnt_sub_action_before_it_is_executed_by_the_incumbent() -> None:
    config = configuration(target="take_key", options=["get_key"], env_steps=512)
    trained = train(WORLD, "take_coin", config, [code(GET_KEY)], host_of(WORLD), seed=1, device="cpu")
    learnt = PrefixItem("view.key", None)
    result = _try(OPEN_DOOR, "view.opened", (learnt,), incumbent=load_policy(trained.checkpoint, WORLD))
    assert result.outcome == "accepted"
    with pytest.raises(ValueError, match="no trained policy yet"):
        _try(OPEN_DOOR, "view.opened", (learnt,))


def test_the_trial_row_finds_its_columns() -> None:
    given = {"sub_task", "iteration", "revision", "sub_action", "version", "source_hash", "done_when"}
    columns = set(tables.Trial.model_fields) - set(tables.Row.model_fields) - given
    assert columns <= set(vars(_try(GET_KEY, "view.key")))


def test_a_stop_is_told() -> None:
    class Stop(Observer):
        def poll(self) -> Signal:
            return "stop"

    assert _try(GET_KEY, "view.key", observer=Stop()).outcome == "stopped"


def test_yields_are_shown_as_run_lengths() -> None:
    assert run_lengths(["left", "left", "do"]) == ["left x2", "do"]
    many = [str(i) for i in range(100)]
    assert run_lengths(many, 4) == ["0", "1", "... 96 more ...", "98", "99"]


class Filming(Observer):
    films = True


def test_one_failing_and_one_succeeding_trial_are_filmed() -> None:
    seeds = _key_at(2, 2, 1, 1, 2, 2, 1, 2, 1, 1)
    result = _try(KEY_AT_2, "view.key", seeds=seeds, max_steps=3, observer=Filming())
    won = next(t["seed"] for t in result.trials if t["end_true"])
    lost = next(t["seed"] for t in result.trials if not t["end_true"])
    assert list(dict.fromkeys(m.episode for m in result.moments)) == [won, lost]


def test_a_trial_that_never_got_to_the_sub_action_is_filmed_too() -> None:
    result = _try(
        GET_KEY, "view.key", (PrefixItem("view.opened", Action(source_hash(GET_KEY)), "open_it"),), observer=Filming()
    )
    assert result.outcome == "unreached" and {m.episode for m in result.moments} == {result.trials[0]["seed"]}


def test_a_trial_whose_prefix_failed_is_filmed_also_where_another_one_succeeded() -> None:
    prefix = PrefixItem("view.key", Action(source_hash(KEY_AT_2)), "get_key")
    seeds = _key_at(2, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    result = _try(OPEN_DOOR, "view.opened", (prefix,), seeds=seeds, observer=Filming())
    assert (result.outcome, result.successes) == ("unreached", 1)
    assert list(dict.fromkeys(m.episode for m in result.moments)) == seeds[:2]


def test_a_trial_that_begins_again_repeats_one_batch_at_most(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    class Watching(Observer):
        films = True

        def __init__(self, until: int) -> None:
            self.until, self.polls = until, 0

        def poll(self) -> Signal:
            self.polls += 1
            if self.polls == self.until:
                raise Killed
            return "go"

    seeds = _key_at(2, 2, 2, 2, 1, 2, 2, 1, 1, 1)
    whole = Watching(10_000)
    unbroken = _try(KEY_AT_2, "view.key", seeds=seeds, max_steps=3, observer=whole)
    assert (unbroken.outcome, unbroken.prefixes) == ("accepted", 10)
    with pytest.raises(Killed):
        _try(
            KEY_AT_2,
            "view.key",
            seeds=seeds,
            max_steps=3,
            observer=Watching(whole.polls),
            partial=PartialTrial(tmp_path, "a"),
        )
    again = Watching(10_000)
    result = _try(KEY_AT_2, "view.key", seeds=seeds, max_steps=3, observer=again, partial=PartialTrial(tmp_path, "a"))
    assert vars(result) == vars(unbroken) and result.moments
    assert again.polls < whole.polls, "everything was done again"
    other = Watching(10_000)
    _try(
        KEY_AT_2, "view.key", seeds=seeds, max_steps=3, observer=other, partial=PartialTrial(tmp_path, "another trial")
    )
    assert other.polls == whole.polls
    (tmp_path / "trial.part").write_bytes(b"half of it")
    assert PartialTrial(tmp_path, "a").load() is None


def test_a_view_may_hold_whole_numbers_of_any_size(tmp_path: Path) -> None:
    kept = {"lost": [{"timeline": [{"board": 1 << 100}], "view": b"1"}]}
    PartialTrial(tmp_path, "a").save(kept)
    assert PartialTrial(tmp_path, "a").load() == kept


def test_a_kill_behind_the_usual_number_of_seeds_changes_nothing(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    class Dying(Observer):
        def __init__(self, polls: int) -> None:
            self.left = polls

        def poll(self) -> Signal:
            self.left -= 1
            if not self.left:
                raise Killed
            return "go"

    def tried(observer: Observer, partial: PartialTrial | None = None) -> TrialResult:
        before = PrefixItem("view.key", Action(source_hash(KEY_AT_2)))
        return _try(
            OPEN_DOOR, "view.opened", (before,), seeds=_key_at(*([1] * 8 + [2]) * 6), max_steps=30,
            affordable=24 * 60, observer=observer, partial=partial,
        )  # fmt: skip

    whole = Dying(10**6)
    unbroken = tried(whole)
    assert 20 < unbroken.prefixes < 45, "it ends because its env steps are spent"
    with pytest.raises(Killed):
        tried(Dying(10**6 - whole.left - 1), PartialTrial(tmp_path, "a"))
    assert vars(tried(Dying(10**6), PartialTrial(tmp_path, "a"))) == vars(unbroken)


def test_a_slow_world_runs_no_more_prefixes_than_usual() -> None:
    class Slow(ChangedWorld):
        slow = True

    assert affordable_env_steps(Slow(), 1_000_000) == affordable_env_steps(Slow(), None) == 0
    assert affordable_env_steps(WORLD, 1_000_000) == 20_000
    assert affordable_env_steps(WORLD, None) > 10**9, "without a budget nothing is too much"
