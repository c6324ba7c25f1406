"""What calls, plans, predicates, masks and rewards do: the same in a locked process and in the trainer's."""

from __future__ import annotations

import pytest

from rlgpt.training.host.api import FOLLOW_PLAN, Action, Ask, Host, Programs
from rlgpt.training.host.client.errors import HostError, NotAdmitted
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.host.sandbox import program
from rlgpt.training.host.sandbox.lane import STEPS_CAP
from tests.host.driving import BACK, COUNT, LEFT, RIGHT, STAY, WALK, begin, counted, follow, go_on, load, source
from tests.host.world import WORLD, packed

ITEM = 0x8000


def test_a_call_yields_until_it_returns(host: Host) -> None:
    load(host, WALK)
    assert begin(host, 0)[0].command == RIGHT
    assert go_on(host, 1).command == RIGHT
    end = go_on(host, 9)
    assert (end.command, end.end, end.action) == (None, "return", 0)
    assert go_on(host, 9).message == "no call is open"


def test_lanes_do_not_know_each_other(host: Host) -> None:
    load(host, WALK, BACK, COUNT)
    assert [answer.command for answer in begin(host, 0, 1, 2)] == [RIGHT, LEFT, LEFT]
    views = {2: packed(1), 0: packed(9), 1: packed(1)}
    answers = host.tick([Ask(lane, view, resume=True) for lane, view in views.items()])
    assert [(answer.lane, answer.command, answer.end) for answer in answers] == [
        (2, LEFT, None),
        (0, None, "return"),
        (1, LEFT, None),
    ]


def test_a_posted_tick_keeps_its_answers_through_another_request_and_may_be_dropped(host: Host) -> None:
    load(host, COUNT)
    begin(host, 0)
    host.post([Ask(0, packed(1), resume=True)])
    assert host.admit("action", source('yield "stay"')).admitted
    assert [answer.command for answer in host.collect()] == [counted(2)]
    with pytest.raises(ValueError, match="nothing was posted"):
        host.collect()
    host.post([Ask(0, packed(1), resume=True)])
    host.post([Ask(0, packed(1), resume=True)])
    assert [answer.command for answer in host.collect()] == [counted(4)], "what was dropped was done all the same"
    assert go_on(host, 1).command == counted(5)


def test_arguments_are_bound_at_loading(host: Host) -> None:
    text = 'def go(view, way: Literal["left", "right"]):\n    yield way'
    name = host.admit("action", text).source_hash
    host.load(Programs(actions=(Action(name, (("way", "left"),)), Action(name, (("way", "right"),)))))
    assert [answer.command for answer in begin(host, 0, 1)] == [LEFT, RIGHT]
    with pytest.raises(NotAdmitted, match="does not take"):
        host.load(Programs(actions=(Action(name, (("way", "up"),)),)))


def test_what_was_never_admitted_is_not_loaded(host: Host) -> None:
    with pytest.raises(NotAdmitted):
        host.load(Programs(actions=(Action("0" * 32),)))
    with pytest.raises(HostError):
        host.load(Programs(predicates=("view.at > 1",)))


def test_an_error_ends_the_call_and_names_the_line(host: Host) -> None:
    load(host, source('view = yield "stay"', "x = {}[view.coins]"))
    begin(host, 0)
    end = go_on(host, 0, coins=7)
    assert (end.end, end.message) == ("error", "line 3: KeyError: 7")


def test_a_bad_yield_ends_the_call_and_names_the_line(host: Host) -> None:
    load(host, source('view = yield "stay"', "", 'yield "fly"'))
    begin(host, 0)
    end = go_on(host, 0)
    assert end.end == "bad_yield" and end.message.startswith("line 4: there is no primitive `fly`; write stay")


def test_a_call_ends_at_the_hosts_own_cap(host: Host) -> None:
    load(host, COUNT)
    begin(host, 0)
    for _ in range(STEPS_CAP - 1):
        assert go_on(host, 1).end is None
    assert go_on(host, 1).end == "budget"


BUSY = source("while True:", "    for _ in range(view.coins * 10):", "        pass", '    view = yield "stay"')


def steps_of(host: Host, rounds: int) -> int:
    """How many env steps a call takes that loops so often in each, up to 40."""
    load(host, BUSY)
    begin(host, 0)
    for step in range(40):
        answer = go_on(host, 0, coins=rounds // 10)
        if answer.command is None:
            assert answer.end == "budget" and "10,000 per env step" in answer.message
            return step
    return 40


def test_the_budget_is_deterministic_for_each_yield_and_in_the_long_run(host: Host) -> None:
    assert steps_of(host, 50_010) == 0
    assert steps_of(host, 49_000) == 1
    assert steps_of(host, 25_000) == steps_of(host, 25_000) == 2
    assert steps_of(host, 12_000) == 19
    assert steps_of(host, 9_990) == 40


def test_map_memory_is_the_lanes_own(host: Host) -> None:
    load(host, source("while True:", '    view = yield "right" if len(view.seen) > 2 else "left"'))
    begin(host, 0, 0)
    host.tick([Ask(0, packed(1), resume=True)])
    assert go_on(host, 2).command == RIGHT
    assert host.tick([Ask(1, packed(2), resume=True)])[0].command == LEFT
    assert host.tick([Ask(0, packed(5, whole=True), open=0)])[0].command == LEFT


def test_rng_depends_on_seed_step_and_view_not_on_the_lane(host: Host) -> None:
    load(host, source("while True:", '    yield rng.choice(["left", "right", "stay"])'))

    def draws(lane: int, step: int) -> list[object]:
        view = packed(0, whole=True)
        drawn = [host.tick([Ask(lane, view, open=0, episode_start=True, step=step)])[0].command]
        return drawn + [host.tick([Ask(lane, packed(0), resume=True)])[0].command for _ in range(12)]

    assert draws(0, 0) == draws(0, 0)
    assert draws(0, 0) == draws(1, 0)
    assert draws(0, 0) != draws(0, 1)


def test_interleaved_calls_keep_their_own_rng(host: Host) -> None:
    load(host, source("while True:", '    yield rng.choice(["left", "right", "stay"])'))
    alone = [begin(host, 0)[0].command] + [go_on(host, 0).command for _ in range(8)]
    together = [begin(host, 0, 0)[0].command]
    for _ in range(8):
        together.append(host.tick([Ask(lane, packed(0), resume=True) for lane in (0, 1)])[0].command)
    assert together == alone


# follow_plan


def test_follow_plan_runs_the_first_item_that_is_not_done(host: Host) -> None:
    load(host, plan=[("view.coins > 0", source('yield "stay"', 'yield "left"')), ("view.at >= 5", WALK)])
    assert (follow(host).command, follow(host).action) == (STAY, ITEM)
    answer = host.tick([Ask(0, packed(1, 1, whole=True), open=FOLLOW_PLAN)])[0]
    assert (answer.command, answer.action) == (RIGHT, ITEM + 1)


def test_follow_plan_goes_on_with_an_item_and_leaves_it_when_done(host: Host) -> None:
    collect = source('yield "stay"', 'yield "left"', 'yield "stay"', name="collect")
    load(host, plan=[("view.coins > 0", collect), ("view.at >= 5", WALK)])
    assert follow(host).command == STAY
    assert go_on(host, 0).command == LEFT
    done = go_on(host, 0, coins=1)
    assert (done.command, done.action) == (RIGHT, ITEM + 1)
    end = go_on(host, 5, coins=1)
    assert (end.command, end.end, end.action) == (None, "return", -1)
    assert "done" in end.message


def test_follow_plan_starts_an_item_again_when_it_returns_undone(host: Host) -> None:
    load(host, plan=[("view.coins > 0", source('yield "stay"', 'yield "left"'))])
    commands = [follow(host).command] + [go_on(host, 0).command for _ in range(3)]
    assert commands == [STAY, LEFT, STAY, LEFT]


def test_follow_plan_ends_when_an_item_does_nothing(host: Host) -> None:
    lazy = source("if view.at > 100:", '    yield "stay"', name="lazy")
    load(host, plan=[("view.at > 1", WALK), ("view.coins > 0", lazy)])
    end = follow(host, at=2)
    assert (end.end, end.action) == ("return", ITEM + 1)
    assert "sub-action 2 returned without an env step" in end.message


def test_follow_plan_reports_the_item_that_failed(host: Host) -> None:
    load(host, plan=[("view.coins > 0", source('view = yield "stay"', "x = 1 // view.at", 'yield "stay"'))])
    follow(host)
    end = go_on(host, 0)
    assert (end.end, end.action) == ("error", ITEM)
    assert end.message.startswith("line 3: ZeroDivisionError")


def test_follow_plan_keeps_nothing_between_calls(host: Host) -> None:
    load(host, plan=[("view.at >= 5", COUNT)])
    first = [follow(host).command] + [go_on(host, 0).command for _ in range(4)]
    assert first == [follow(host).command] + [go_on(host, 0).command for _ in range(4)]


# Questions


def test_predicates_compare_with_the_start_of_the_episode(host: Host) -> None:
    load(host, predicates=["view.at - start.at >= 2", "view.at > 100", "len(start.seen) == 1"])
    host.tick([Ask(0, packed(3, whole=True), episode_start=True)])
    assert host.tick([Ask(0, packed(4), predicates=True)])[0].predicates == 0b100
    assert host.tick([Ask(0, packed(5), predicates=True)])[0].predicates == 0b101
    host.tick([Ask(0, packed(5, whole=True), episode_start=True)])
    assert host.tick([Ask(0, packed(6), predicates=True)])[0].predicates == 0b100


def test_a_failing_predicate_is_false_and_says_why(host: Host) -> None:
    load(host, predicates=["1 // (1 - view.coins) > 0", "view.at == 0"])
    answer = host.tick([Ask(0, packed(0, 0, whole=True), episode_start=True, predicates=True)])[0]
    assert (answer.predicates, answer.message) == (0b11, "")
    answer = host.tick([Ask(0, packed(0, 1), predicates=True)])[0]
    assert answer.predicates == 0b10 and "ZeroDivisionError" in answer.message


def test_available_masks_actions(host: Host) -> None:
    rich = "def available(view):\n    return view.coins > 2\n" + WALK
    odd = "def available(view):\n    return view.coins\n" + BACK
    name = host.admit("action", odd, [[packed(0, whole=True)]])
    assert not name.admitted and "True or False" in name.message
    load(host, WALK, rich)
    assert host.tick([Ask(0, packed(0, 1, whole=True), available=True)])[0].available == 0b01
    assert host.tick([Ask(0, packed(0, 3), available=True)])[0].available == 0b11


def test_rewards_are_summed_and_clipped(host: Host) -> None:
    per_coin = "def reward(before, view):\n    return (view.coins - before.coins) / 4"
    per_cell = "def reward(before, view):\n    return view.at - before.at"
    load(host, rewards=[per_coin, per_cell])
    start = host.tick([Ask(0, packed(0, whole=True), episode_start=True, reward=True)])[0]
    assert start.reward == 0.0
    assert host.tick([Ask(0, packed(0, 1), reward=True)])[0].reward == 0.25
    assert host.tick([Ask(0, packed(0, 3), reward=True)])[0].reward == 0.5
    assert host.tick([Ask(0, packed(7, 3), reward=True)])[0].reward == 1.0
    assert host.tick([Ask(0, packed(0, 3), reward=True)])[0].reward == -1.0


def test_everything_can_be_asked_in_one_message(host: Host) -> None:
    load(host, WALK, predicates=["view.at > 1"], rewards=["def reward(before, view):\n    return 0.5"])
    begin(host, 0)
    answer = host.tick([Ask(0, packed(2), resume=True, predicates=True, available=True, reward=True)])[0]
    assert answer[:8] == (0, RIGHT, None, "", 0, 1, 1, 0.5)


def test_an_episode_start_ends_the_open_call(host: Host) -> None:
    load(host, WALK)
    begin(host, 0)
    host.tick([Ask(0, packed(0, whole=True), episode_start=True)])
    assert go_on(host, 1).message == "no call is open"


def test_a_source_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    host = open_host(WORLD, lanes=1, mode="trusted")
    load(host, WALK, predicates=["view.at > 1"])
    monkeypatch.setattr(program, "check", None)
    load(host, WALK, predicates=["view.at > 1"])
    assert begin(host, 0)[0].command == RIGHT
    assert "could not be checked: TypeError" in host.admit("action", BACK).message, "it was not checked"


def test_loading_ends_calls_but_keeps_the_episode(host: Host) -> None:
    load(host, WALK, predicates=["view.at - start.at == 3"])
    begin(host, 0)
    load(host, BACK, predicates=["view.at - start.at == 3"])
    assert go_on(host, 1).message == "no call is open"
    assert host.tick([Ask(0, packed(3), predicates=True)])[0].predicates == 1
