"""A host process dies: only the guilty call ends, everything else goes on as if nothing had happened."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlgpt.training.host import wire
from rlgpt.training.host.api import FOLLOW_PLAN, Action, Answer, Ask, Host, PlanItem, Programs
from rlgpt.training.host.client import process as process_module
from rlgpt.training.host.client.action_host import ActionHost
from rlgpt.training.host.client.errors import HostLost
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.host.client.process import HostProcess
from tests.host.driving import COUNT, LEFT, RIGHT, WALK, WHOLE, admitted, begin, counted, go_on, load, source
from tests.host.world import WORLD, packed
from tests.patience import PATIENCE

BOMB = """
def bomb(view):
    view = yield "stay"
    x = 3
    for _ in range(60 * view.coins):
        x = x * x
    yield "left"
"""
"""Harmless on its first step; then one C call without end, if there is a coin."""


def everyone(host: Host, coins: int, at: int = 1, lanes: int = 16) -> list[Answer]:
    return host.tick([Ask(lane, packed(at, coins), resume=True) for lane in range(lanes)])


def pid(host: Host) -> int:
    assert isinstance(host, ActionHost) and isinstance(host._transport, HostProcess)
    return host._transport.pid


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_kill_among_sixteen_ends_only_the_guilty_call(locked_host: Host) -> None:
    programs = load(locked_host, COUNT, BOMB)
    begin(locked_host, *([0] * 9 + [1] + [0] * 6))
    before = pid(locked_host)
    answers = everyone(locked_host, coins=1)
    assert [answer.end for answer in answers].count(None) == 15
    assert (answers[9].end, answers[9].action) == ("killed", 1)
    assert "250 ms of CPU time" in answers[9].message and "`bomb`" in answers[9].message
    assert gone(before)
    for steps in range(3, 9):
        others = [answer for answer in everyone(locked_host, coins=1) if answer.lane != 9]
        assert {answer.command for answer in others} == {counted(steps)}
    assert [death.source_hash for death in locked_host.take_deaths()] == [programs.actions[1].source_hash]


def test_time_in_which_everything_stood_still_is_nobodys_fault(
    locked_host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker and its host are stopped for a minute, as by a debugger or a job control, and go on."""
    load(locked_host, COUNT)
    begin(locked_host, 0)
    hours = itertools.count(0, 3_600)
    monkeypatch.setattr(process_module.time, "monotonic", lambda: float(next(hours)))
    before = pid(locked_host)
    os.kill(before, signal.SIGSTOP)
    woken = threading.Timer(0.15, os.kill, (before, signal.SIGCONT))
    woken.start()
    answer = locked_host.tick([Ask(0, packed(1), resume=True)])[0]
    woken.join()
    assert answer.command == counted(2) and pid(locked_host) == before and not locked_host.take_deaths()


def test_two_deaths_disable_a_source_and_nothing_else(locked_host: Host) -> None:
    programs = load(locked_host, COUNT, BOMB)
    begin(locked_host, 1, 1, 1, 0)
    ends = [answer.end for answer in everyone(locked_host, coins=1, lanes=4)]
    assert ends == ["killed", "killed", "quarantined", None]
    assert set(locked_host.quarantined) == {programs.actions[1].source_hash}
    assert begin(locked_host, 1)[0].end == "quarantined"
    refusal = locked_host.admit("action", BOMB)
    assert not refusal.admitted and refusal.rule == "quarantined"
    mask = locked_host.tick([Ask(5, WHOLE, episode_start=True, available=True)])[0].available
    assert mask == 0b01


def test_a_call_that_dies_while_its_lane_is_not_asked_ends_at_its_next_step(locked_host: Host) -> None:
    load(locked_host, COUNT, BOMB)
    begin(locked_host, 0, 1)
    os.kill(pid(locked_host), signal.SIGKILL)
    assert locked_host.tick([Ask(0, packed(1), resume=True)])[0].command == counted(2)
    assert locked_host.tick([Ask(1, packed(1), resume=True)])[0].end is None


def test_a_host_killed_from_outside_is_nobodys_fault(locked_host: Host) -> None:
    load(locked_host, COUNT, WALK)
    begin(locked_host, 0, 1, 0)
    everyone(locked_host, 0, lanes=3)
    os.kill(pid(locked_host), signal.SIGKILL)
    answers = everyone(locked_host, 0, lanes=3)
    assert [answer.command for answer in answers] == [counted(3), RIGHT, counted(3)]
    (death,) = locked_host.take_deaths()
    assert death.source_hash == "" and "from outside" in death.cause
    assert not locked_host.quarantined


def test_plans_memory_and_questions_survive_a_death(locked_host: Host) -> None:
    """A host that died answers like one that did not."""
    witness = open_host(WORLD, lanes=16, mode="trusted", seed=1)
    for host in (locked_host, witness):
        load(
            host,
            source("while True:", '    view = yield rng.choice(["left", "right"]) if len(view.seen) % 2 else "stay"'),
            plan=[("view.coins > 3", COUNT), ("view.at - start.at > 6", WALK)],
            predicates=["view.at - start.at > 2"],
            rewards=["def reward(before, view):\n    return (view.at - before.at) / 10"],
        )

    def step(host: Host, at: int, coins: int) -> list[Answer]:
        view = packed(at, coins)
        ask = {"predicates": True, "available": True, "reward": True}
        return host.tick([Ask(0, view, resume=True, **ask), Ask(1, view, resume=True, **ask), Ask(2, view, **ask)])

    for host in (locked_host, witness):
        host.tick([Ask(lane, packed(1, whole=True), episode_start=True, step=5) for lane in range(3)])
        host.tick([Ask(lane, packed(2, whole=True), open=(0, FOLLOW_PLAN)[lane], step=6) for lane in range(2)])
        host.tick([Ask(2, packed(2))])
    for at, coins in ((3, 0), (4, 1), (5, 4), (5, 4), (8, 4)):
        os.kill(pid(locked_host), signal.SIGKILL)
        assert step(locked_host, at, coins) == step(witness, at, coins)
    assert len(locked_host.take_deaths()) == 5


@pytest.mark.parametrize(
    ("what", "kind"),
    [("predicates", "done_when"), ("rewards", "reward")],
)
def test_a_question_that_kills_is_dropped_and_the_call_goes_on(locked_host: Host, what: str, kind: str) -> None:
    bomb = "(lambda x: [x := x * x for _ in range(60 * view.coins)])(3) == 0"
    text = f"def reward(before, view):\n    return 1 if {bomb} else 0.5" if kind == "reward" else bomb
    load(locked_host, COUNT, **{what: [text]})
    begin(locked_host, 0, 0)
    asked = {"predicates": True, "reward": True}
    views = [packed(1, 1), packed(1)]
    first, second = locked_host.tick([Ask(i, view, resume=True, **asked) for i, view in enumerate(views)])
    assert first.command == second.command == counted(2)
    assert (first.predicates, first.reward) == (0, 0.0) and "while running" in first.message
    assert second.reward == (0.5 if kind == "reward" else 0.0)
    assert [death.quarantined for death in locked_host.take_deaths()] == [False]


def test_a_long_call_may_be_rebuilt_in_more_time_than_one_answer_may_take(locked_host: Host) -> None:
    busy = source("while True:", "    x = [0] * (3_000_000 * view.coins)", '    view = yield "right"', name="busy")
    load(locked_host, busy)
    begin(locked_host, 0)
    before = locked_host.cpu_seconds()
    while locked_host.cpu_seconds() - before < 2 * process_module.CPU_SECONDS[wire.TICK]:
        assert go_on(locked_host, at=1, coins=1).command == RIGHT
    os.kill(pid(locked_host), signal.SIGKILL)
    answer = go_on(locked_host, at=1, coins=1)
    assert (answer.command, answer.end, answer.message) == (RIGHT, None, "")
    assert len(locked_host.take_deaths()) == 1


def test_a_guard_that_was_spent_in_an_earlier_call_is_so_neither_with_nor_without_a_death(locked_host: Host) -> None:
    guard = source("if view.at > 1:", '    yield "left"', name="guard")  # has nothing to do in the first cell
    walk = source("while True:", '    view = yield "right"', name="walk")
    actions = [Action(admitted(locked_host, text)) for text in (guard, walk)]
    for test in ("view.coins > 0", "view.at > 8", "False"):
        admitted(locked_host, test, "done_when")
    plan = PlanItem("False", actions[0], "view.coins > 0"), PlanItem("view.at > 8", actions[1])
    locked_host.load(Programs(plan=plan))
    first = locked_host.tick([Ask(0, packed(1, 1, whole=True), open=FOLLOW_PLAN, episode_start=True)])[0]
    assert first.command == RIGHT
    os.kill(pid(locked_host), signal.SIGKILL)
    assert go_on(locked_host, at=2, coins=1).command == RIGHT, "it is spent in this call"
    assert locked_host.tick([Ask(0, packed(2, 1, whole=True), open=FOLLOW_PLAN)])[0].command == LEFT
    os.kill(pid(locked_host), signal.SIGKILL)
    assert go_on(locked_host, at=2, coins=1).command == LEFT


def test_an_old_call_that_ends_the_host_while_it_is_closed_does_not_take_the_new_one(locked_host: Host) -> None:
    chain = source(
        "chain = [0]", "while True:", "    for _ in range(9_900):", "        chain = enumerate(chain)",
        '    view = yield "stay"', name="chain",
    )  # fmt: skip
    load(locked_host, chain, COUNT)
    begin(locked_host, 0)
    for _ in range(120):  # freeing a chain of a million objects overflows a stack of the usual 8 MB
        assert go_on(locked_host, at=1).end is None
    opened = locked_host.tick([Ask(0, packed(1, whole=True), open=1)])[0]
    assert (opened.command, opened.end, opened.action) == (counted(1), None, 1)
    assert go_on(locked_host, at=1).command == counted(2)
    assert {death.lane for death in locked_host.take_deaths()} <= {0}


def test_what_a_recursive_helper_leaves_behind_is_not_charged_to_an_innocent_call(locked_host: Host) -> None:
    helper = source(
        "grid = [0] * 100_000",
        "def fill(i):",
        "    if i < 20:",
        "        grid[i] = 1",
        "        fill(i + 1)",
        "fill(0)",
        "return sum(grid)",
        name="filled",
    )
    action = source("while filled(view) > 0:", '    view = yield "right"')
    load(locked_host, f"{helper}\n\n\n{action}")
    begin(locked_host, 0)
    for _ in range(600):  # 480 MB, where the host may have 256 MB
        assert go_on(locked_host, at=1).command == RIGHT
    assert not locked_host.take_deaths()


@pytest.mark.parametrize("hog_first", [False, True])
def test_memory_is_charged_to_the_call_that_holds_most(hog_first: bool) -> None:
    ballast = bytearray(b"x" * (400 << 20))  # a trainer is large, and a spawned process's peak begins with its parent's
    host = open_host(WORLD, lanes=2, mode="locked", seed=1)
    try:
        memory_is_charged_to_its_holder(host, int(not hog_first))
    finally:
        host.close()
    assert len(ballast) == 400 << 20


def memory_is_charged_to_its_holder(locked_host: Host, hog_lane: int) -> None:
    hog = source(
        "held = []", "while True:", '    view = yield "stay"', "    try:", "        for _ in range(3 * view.coins):",
        "            held.append('x' * 4_000_000)", "    except Exception:", "        pass", name="hog",
    )  # fmt: skip
    hungry = source(
        "kept = [0] * 5_000_000", "while True:", '    view = yield "right"', "    x = [0] * (1_000_000 * view.coins)",
        name="hungry",
    )  # fmt: skip
    programs = load(locked_host, *((hungry, hog) if hog_lane else (hog, hungry)))
    begin(locked_host, 0, 1)
    for _ in range(40):  # a little in each tick, which has a limit of time as well
        answers = locked_host.tick([Ask(lane, packed(1, 1), resume=True) for lane in (0, 1)])
        assert answers[1 - hog_lane].command == RIGHT
        if answers[hog_lane].end:
            break
    assert answers[hog_lane].end == "killed" and "memory" in answers[hog_lane].message
    assert {death.source_hash for death in locked_host.take_deaths()} == {programs.actions[hog_lane].source_hash}


def test_an_innocent_host_needs_no_new_process(locked_host: Host) -> None:
    load(locked_host, COUNT)
    before = pid(locked_host)
    begin(locked_host, *[0] * 16)
    everyone(locked_host, 0)
    assert (pid(locked_host), locked_host.deaths, locked_host.take_deaths()) == (before, 0, [])


def test_closing_leaves_no_process() -> None:
    host = open_host(WORLD, lanes=1, mode="locked", seed=1)
    assert isinstance(host, ActionHost)
    processes = [pid(host), host._processes._next_process.pid]  # type: ignore[attr-defined]
    host.close()
    assert all(gone(process) for process in processes)


def test_a_host_dies_with_its_parent() -> None:
    script = (
        "import os, time\n"
        "from rlgpt.training.host.client.open_host import open_host\n"
        "from tests.host.world import WORLD\n"
        "host = open_host(WORLD, lanes=1, mode='locked', seed=1)\n"
        "print(host._transport.pid, host._processes._next_process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    root = Path(__file__).resolve().parents[2]
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root)
    assert parent.stdout is not None
    processes = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60 * PATIENCE
    while not all(gone(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(processes) == 2 and all(gone(process) for process in processes)


def test_a_host_that_cannot_start_says_so(tmp_path: Path) -> None:
    from rlgpt.training.host.client.open_host import spawned_host

    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)")
    with pytest.raises(HostLost, match="exited with status 3"):
        spawned_host(WORLD, 1, "locked", 1, broken)


def test_a_dry_run_may_take_more_time_than_one_of_its_steps(locked_host: Host) -> None:
    busy = source("while True:", "    x = [0] * 2_000_000", '    view = yield "stay"')
    before = locked_host.cpu_seconds()
    admission = locked_host.admit("action", busy, [[WHOLE] + [packed(0)] * 149] * 6)
    assert admission.admitted, admission
    assert locked_host.cpu_seconds() - before > process_module.CPU_SECONDS[wire.ADMIT], "else this shows nothing"
    assert not locked_host.take_deaths()
