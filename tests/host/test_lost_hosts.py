"""Hosts that die for no reason that a source gives, and sources that end a host where none is called."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from rlgpt.training.host import wire
from rlgpt.training.host.api import FOLLOW_PLAN, Action, Ask, Host, Programs
from rlgpt.training.host.client import spawner
from rlgpt.training.host.client.action_host import ActionHost
from rlgpt.training.host.client.errors import HostLost
from rlgpt.training.host.client.open_host import Spawning, hello, open_host, spawned_host
from rlgpt.training.host.client.process import HostProcess
from rlgpt.training.host.client.spawner import CHILD
from rlgpt.training.host.sandbox import program
from tests.host.driving import COUNT, LEFT, WALK, WHOLE, begin, counted, go_on, load, source
from tests.host.side import UNREADABLE
from tests.host.test_lock import UNGUARDED
from tests.host.world import WORLD, packed

CRASH = "ctypes.string_at(0)"


class Killer(Spawning):
    """Processes that somebody outside kills when they are given a message of a kind, so often."""

    def __init__(self) -> None:
        super().__init__(hello(WORLD, 4, "locked", 1), CHILD)
        self.kills: dict[int, int] = {}

    def take(self) -> HostProcess:
        process = super().take()
        begun = process.begin

        def begin(kind: int, body: bytes) -> None:
            if self.kills.get(kind, 0):
                self.kills[kind] -= 1
                os.kill(process.pid, signal.SIGKILL)
            begun(kind, body)

        process.begin = begin  # type: ignore[method-assign]
        return process


@pytest.fixture
def killer() -> Killer:
    return Killer()


@pytest.fixture
def hunted(killer: Killer) -> Iterator[ActionHost]:
    host = ActionHost("locked", 4, WORLD.native_action_size, killer)
    yield host
    host.close()


@pytest.mark.parametrize(("kills", "admitted"), [(1, True), (2, True), (3, False)])
def test_deaths_that_nobody_is_blamed_for_end_an_admission_at_last(
    hunted: Host, killer: Killer, kills: int, admitted: bool
) -> None:
    killer.kills[wire.ADMIT] = kills
    told = hunted.admit("action", COUNT, [[WHOLE]])
    assert (told.admitted, told.rule) == (admitted, "" if admitted else "killed")
    assert admitted or "from outside with SIGKILL, 3 times in a row" in told.message
    assert not hunted.quarantined and {death.source_hash for death in hunted.take_deaths()} == {""}
    load(hunted, COUNT)
    assert begin(hunted, 0)[0].command == counted(1), "it is as good as any when it is sent again"


def test_deaths_that_nobody_is_blamed_for_end_the_calls_and_not_the_host(hunted: Host, killer: Killer) -> None:
    load(hunted, COUNT, predicates=["view.at == 2"])
    begin(hunted, 0, 0, 0)
    killer.kills[wire.TICK] = 3
    asks = [Ask(lane, packed(1), resume=lane < 2, predicates=True) for lane in (0, 1, 3)]
    answers = hunted.tick(asks)
    assert [answer.end for answer in answers] == ["killed", "killed", None]
    assert all("3 times in a row, and no source explains it" in answer.message for answer in answers)
    assert hunted.tick([Ask(2, packed(1), resume=True)])[0].end == "killed", "its lane was not asked in that tick"
    view = packed(2, whole=True)
    assert hunted.tick([Ask(0, view, open=0, predicates=True)])[0][1:3] == (counted(1), None)
    assert hunted.tick([Ask(1, packed(2), predicates=True)])[0].predicates == 1
    assert not hunted.quarantined


def test_a_host_that_is_always_killed_is_lost(hunted: Host, killer: Killer) -> None:
    load(hunted, COUNT)
    begin(hunted, 0)
    killer.kills[wire.TICK] = 1000
    with pytest.raises(HostLost, match="SIGKILL"):
        go_on(hunted, 1)


def test_a_process_that_cannot_be_started_for_a_moment_is_tried_again(
    hunted: ActionHost, killer: Killer, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(hunted, COUNT)
    begin(hunted, 0)
    failures = iter([True, True])

    def spawn(self: object, script: object) -> object:
        if next(failures, False):
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return spawned(self, script)

    spawned = spawner.Spawner.spawn
    monkeypatch.setattr(spawner.Spawner, "spawn", spawn)
    for step in (2, 3):
        killer.kills[wire.TICK] = 1
        assert go_on(hunted, 1).command == counted(step)


def test_what_was_refused_can_be_loaded_and_is_not_run(host: Host) -> None:
    """As when rows of an earlier day name a source that is refused today."""
    never = (
        ("action", source("yield eval")),
        ("done_when", "view.gold"),
        ("reward", "def reward(before, view):\n  x = ="),
    )
    names = [host.admit(kind, text, [[WHOLE]]).source_hash for kind, text in never]  # type: ignore[arg-type]
    good = host.admit("action", COUNT, [[WHOLE]]).source_hash
    host.load(
        Programs(
            actions=(Action(names[0], (("way", "left"),)), Action(good)), predicates=("view.gold",), rewards=(names[2],)
        )
    )
    bad, count = begin(host, 0, 1)
    assert bad.end == "quarantined" and "disabled: rule name: `eval` is not known here" in bad.message
    assert count.command == counted(1)
    asked = host.tick([Ask(1, packed(1), resume=True, predicates=True, available=True, reward=True)])[0]
    assert (asked.predicates, asked.available, asked.reward, asked.end) == (0, 0b10, 0.0, None)
    assert host.deaths == 0


@pytest.fixture
def unguarded() -> Iterator[ActionHost]:
    host = spawned_host(WORLD, 4, "locked", 1, UNGUARDED)
    yield host
    host.close()


def test_a_source_that_ends_the_host_while_it_is_loaded_is_disabled(unguarded: ActionHost) -> None:
    looks = "\n    ".join(
        [
            "def look():",
            "import sys",
            "frame = sys._getframe()",
            "while frame:",
            f"    if frame.f_code.co_name == 'load': {CRASH}",
            "    frame = frame.f_back",
        ]
    )
    text = f"{looks}\nlook()\n" + source('yield "stay"', 'yield "left"')
    programs = load(unguarded, COUNT, text)
    begin(unguarded, 0, 1)
    assert isinstance(unguarded._transport, HostProcess)
    os.kill(unguarded._transport.pid, signal.SIGKILL)  # the next process has it to compile again
    count, bad = unguarded.tick([Ask(lane, packed(1), resume=True) for lane in (0, 1)])
    assert count.command == counted(2)
    assert bad.end == "quarantined" and "SIGSEGV while loading `act`, death 2 of this source" in bad.message
    assert set(unguarded.quarantined) == {programs.actions[1].source_hash}
    load(unguarded, COUNT)
    assert begin(unguarded, 0)[0].command == counted(1)


def test_a_call_that_ends_the_host_when_it_is_dropped_is_blamed_under_its_own_name(unguarded: ActionHost) -> None:
    crashes = ("try:", '    view = yield "stay"', '    yield "stay"', "finally:", f"    if view.coins: {CRASH}")
    programs = load(unguarded, COUNT, source(*crashes))
    begin(unguarded, 0, 1)
    unguarded.tick([Ask(1, packed(1, coins=1), resume=True)])
    load(unguarded, source('yield "left"'), COUNT)
    (death,) = unguarded.take_deaths()
    assert death.source_hash == programs.actions[1].source_hash and "`act`" in death.cause
    assert [answer.command for answer in begin(unguarded, 0, 1)] == [LEFT, counted(1)]


def test_an_error_that_nothing_catches_is_a_death_in_the_trainers_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    host = open_host(WORLD, lanes=2, mode="trusted", seed=1)
    load(host, COUNT, predicates=["view.at == 1"])
    begin(host, 0, 0)

    def fail(*_: object) -> bool:
        raise MemoryError

    monkeypatch.setattr(program.Program, "holds", fail)
    asked, other = host.tick([Ask(0, packed(1), resume=True, predicates=True), Ask(1, packed(1), resume=True)])
    assert (asked.command, asked.predicates, other.command) == (counted(2), 0, counted(2))
    assert "ran out of memory while running `done_when`" in asked.message


@pytest.mark.timeout(300)
@pytest.mark.parametrize("plan", [False, True])
def test_a_decoder_that_fails_ends_in_a_sentence_whatever_is_open(plan: bool, killer: Killer) -> None:
    host = ActionHost("locked", 4, WORLD.native_action_size, killer)
    load(host, COUNT, plan=[("view.at >= END", WALK)])
    begin(host, FOLLOW_PLAN if plan else 0)
    with pytest.raises(HostLost, match="cannot be kept alive"):
        go_on(host, 1, UNREADABLE)
    host.close()
