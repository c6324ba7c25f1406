"""The operating-system lock alone: what Python with no language in the way can still do, which is nothing."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlgpt.training.host.api import Ask, Host
from rlgpt.training.host.client.action_host import ActionHost
from rlgpt.training.host.client.doctor import attacked, target
from rlgpt.training.host.client.open_host import spawned_host
from rlgpt.training.host.sandbox import seccomp
from rlgpt.training.host.sandbox.attacks import ATTACKS, Target
from rlgpt.training.host.spin_wait import REPLIED
from tests.host.driving import COUNT, LEFT, RIGHT, STAY, begin, counted, go_on, load, source
from tests.host.world import WORLD, packed

UNGUARDED = Path(__file__).with_name("unguarded.py")


@pytest.fixture(scope="module")
def aim() -> Iterator[Target]:
    with target() as aim:
        yield aim


@pytest.mark.parametrize("name", ATTACKS)
def test_a_locked_process_cannot(name: str, aim: Target) -> None:
    line = attacked(name, ATTACKS[name], aim)
    assert line.enforced, line


HARMLESS_HERE = {"environment", "descriptors", "memory", "endless loop", "crash", "root", "io_uring"}
"""Not given to any process, stopped by the watchdog in every mode, or not possible for every user and kernel."""


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - HARMLESS_HERE))
def test_the_attack_is_real_where_there_is_no_lock(name: str, aim: Target) -> None:
    assert not attacked(name, ATTACKS[name], aim, mode="process").enforced


@pytest.fixture
def unguarded() -> Iterator[ActionHost]:
    host = spawned_host(WORLD, 16, "locked", 1, UNGUARDED)
    yield host
    host.close()


def test_the_unguarded_host_runs_any_python(unguarded: Host) -> None:
    load(unguarded, source("import math", 'yield "right" if type(math).__name__ == "module" else "left"'))
    assert begin(unguarded, 0)[0].command == RIGHT


@pytest.mark.parametrize(
    "attack",
    [
        "os.stat('/etc/passwd')",
        "socket.socket()",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
        "os.fork()",
        "os.execv('/bin/true', ['true'])",
        "threading.Thread(target=int).start()",
        "os.kill(os.getppid(), 0)",
        "ctypes.CDLL(None).ptrace(16, 1, 0, 0)",
        "os.read(1, 1)",
        "os.dup(0)",
        "import this",
    ],
)
def test_a_forbidden_call_ends_only_its_call_and_disables_its_source(unguarded: Host, attack: str) -> None:
    programs = load(unguarded, COUNT, source('yield "stay"', attack, 'yield "stay"'))
    begin(unguarded, 0, 1)
    views = [packed(1), packed(1)]
    good, bad = unguarded.tick([_resume(lane, view) for lane, view in enumerate(views)])
    assert good.command == counted(2)
    assert (bad.end, bad.action) == ("killed", 1) and "system call" in bad.message
    guilty = programs.actions[1].source_hash
    assert set(unguarded.quarantined) == {guilty}
    assert [(death.source_hash, death.quarantined) for death in unguarded.take_deaths()] == [(guilty, True)]
    assert go_on(unguarded, 1).command == counted(3)
    assert unguarded.tick([_open(1, 1)])[0].end == "quarantined"


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/mem", "/dev/null", "new", "."])
def test_there_is_no_file_to_open(unguarded: Host, path: str) -> None:
    """Opening fails and does not kill: Python itself tries it to quote the line of a syntax error."""
    opened = (
        f"io.open({path!r})",
        f"io.open({path!r}, 'a')",
        f"os.open({path!r}, os.O_RDONLY)",
        f"os.listdir({path!r})",
    )
    body = [
        line
        for call in opened
        for line in ("try:", f"    {call}", '    yield "left"', "except FileNotFoundError:", '    yield "stay"')
    ]
    load(unguarded, source("import io", 'yield "stay"', *body))
    assert begin(unguarded, 0)[0].command == STAY
    assert [go_on(unguarded, 1).command for _ in opened] == [STAY] * len(opened)
    assert unguarded.deaths == 0


def test_forged_answers_are_refused(unguarded: Host) -> None:
    forged = struct.pack("<III", 4, 99, 4) + b"evil"
    load(unguarded, COUNT, source('yield "stay"', f"os.write(1, {forged!r})", 'yield "stay"'))
    begin(unguarded, 0, 1)
    good, bad = unguarded.tick([_resume(0, packed(1)), _resume(1, packed(1))])
    assert good.command == counted(2)
    assert bad.end == "killed" and "protocol" in bad.message


@pytest.mark.parametrize("rung", [1, 2, 255])
def test_a_host_that_rings_too_early_or_wrongly_changes_nothing(unguarded: Host, rung: int) -> None:
    ring = (
        "import sys",
        "frame = sys._getframe()",
        "while 'page' not in frame.f_locals: frame = frame.f_back",
        "page = frame.f_locals['page']",
        "while True:",
        f"    page[{REPLIED}] = page[{REPLIED}] + {rung} & 255",
        "    sum(range(300000))",
        "    yield 'left'",
    )
    load(unguarded, COUNT, source(*ring))
    begin(unguarded, 0, 1)
    for step in range(2, 7):
        good, liar = unguarded.tick([_resume(lane, packed(1)) for lane in (0, 1)])
        assert (good.command, liar.command) == (counted(step), LEFT)
    assert unguarded.deaths == 0


def test_nothing_can_be_read_from_the_environment(unguarded: Host) -> None:
    os.environ["RLGPT_TEST_KEY"] = "secret"
    host = spawned_host(WORLD, 1, "locked", 1, UNGUARDED)
    try:
        load(host, source('yield "right" if "RLGPT_TEST_KEY" in os.environ or len(os.environ) > 4 else "left"'))
        assert begin(host, 0)[0].command == counted(1)
    finally:
        host.close()
        del os.environ["RLGPT_TEST_KEY"]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_exactly_the_listed_calls(machine: str) -> None:
    code = seccomp.program(machine, 0, 1)
    audit = seccomp.AUDIT[machine]
    allowed = {
        call for call in range(600) if _verdict(code, audit, call, (0, 0, 0)) or _verdict(code, audit, call, (1, 0, 0))
    }
    number = seccomp.NUMBERS[machine]
    missing = {number[call] for call in seccomp.MISSING if call in number}
    assert allowed == set(number.values()) - missing
    failing = {call for call in range(600) if _answer(code, audit, call, (0, 0, 0)) == 0x00050000 | errno.ENOENT}
    assert failing == missing
    assert not _verdict(code, audit, number["read"], (1, 0, 0))
    assert not _verdict(code, audit, number["write"], (0, 0, 0))
    assert not _verdict(code, audit, number["mmap"], (0, 4096, 7))
    assert not _verdict(code, audit, number["mprotect"], (0, 4096, 5))
    assert not _verdict(code, audit ^ 1, number["brk"], (0, 0, 0))
    assert not _verdict(code, audit, number["brk"] | 0x40000000, (0, 0, 0))


def _verdict(code: bytes, audit: int, call: int, arguments: tuple[int, ...]) -> bool:
    """Whether the filter allows a call."""
    return _answer(code, audit, call, arguments) == 0x7FFF0000


def _answer(code: bytes, audit: int, call: int, arguments: tuple[int, ...]) -> int:
    """Runs the filter as the kernel would: what it returns."""
    data = struct.pack("<IIQ3Q", call, audit, 0, *arguments)
    at = accumulator = 0
    while True:
        operation, if_true, if_false, value = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif operation == 0x06:
            return value
        else:
            true = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            at += if_true if true else if_false


def _resume(lane: int, view: bytes) -> Ask:
    return Ask(lane, view, resume=True)


def _open(lane: int, action: int) -> Ask:
    return Ask(lane, packed(0, whole=True), open=action)
