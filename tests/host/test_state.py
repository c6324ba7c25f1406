"""Nothing outlives a call, and no memory address decides what code does: the ways that were open, one by one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rlgpt.training.host.api import FOLLOW_PLAN, Ask, Host
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.host.client.spawner import ADDR_NO_RANDOMIZE, CHILD, spawner
from tests.host.driving import LEFT, STAY, begin, load, source
from tests.host.world import WORLD, packed

KEEPERS = {
    "a list in a tuple as a default": 'def act(view, memo=([],)):\n    memo[0].append(1)\n    yield "stay"',
    "a dict in a tuple as a keyword default": (
        'def note(view, *, memo=((1, {}),)):\n    memo[0][1][1] = 1\n\ndef act(view):\n    note(view)\n    yield "stay"'
    ),
    "a constant named like a library function": (
        'distance = {}\n\ndef act(view):\n    distance[1] = 1\n    yield "stay"'
    ),
    "a constant named like a builtin": 'len = [0]\n\ndef act(view):\n    len.append(1)\n    yield "stay"',
    "a constant named like the random numbers": "rng = []\n\ndef act(view):\n    x = rng\n    yield x.pop()",
    "a set in a constant": 'SEEN = ({1},)\n\ndef act(view):\n    SEEN[0].add(2)\n    yield "stay"',
    "a frozen set by the methods of sets": 'SEEN = {1}\n\ndef act(view):\n    set.add(SEEN, 2)\n    yield "stay"',
    "a dict in a constant by the methods of dicts": (
        'SEEN = {"a": {1: 2}}\n\ndef act(view):\n    dict.update(SEEN["a"], {3: 4})\n    yield "stay"'
    ),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_what_keeps_something_is_refused(name: str, shared_host: Host) -> None:
    said = shared_host.admit("action", KEEPERS[name], [[packed(0, whole=True), packed(1)]])
    assert not said.admitted, name


@pytest.mark.parametrize("test", ["view.at is 3", "view.seen is not start.seen"])
def test_identity_is_refused(test: str, shared_host: Host) -> None:
    said = shared_host.admit("done_when", test)
    assert (said.admitted, said.rule) == (False, "identity")
    assert shared_host.admit("done_when", "view.at is None or view.coins is not False").admitted


ORDERED = {
    "functions": "{lambda: n for n in range(40)} | {act, distance, len}",
    "views and functions by union": "set([view]).union([act], (lambda: n for n in range(40)))",
    "keys": "{act: 1, distance: 2, len: 3, max: 4, None: 5}.keys() - {1}",
    "items": "{act: 1, distance: 2, len: 3, max: 4, None: 5}.items() & {act: 1, len: 3, None: 5}.items()",
    "unbound": "dict.keys({act: 1, distance: 2, len: 3, max: 4}) | set()",
    "none and texts": "frozenset([None, 'a', 1, (None, 2), 'b'])",
    "ranges": "{range(n, n) for n in range(4)} | {range(n, 9) for n in range(3)} | {None}",
}


@pytest.mark.parametrize("name", ORDERED)
def test_no_address_decides_an_order(name: str) -> None:
    """The order in which members come out is that in which they went in, in every process."""
    lines = [
        f"members = list({ORDERED[name]})",
        "same = [members.index(x) for x in members] == list(range(len(members)))",
    ]
    spelled = ["for x in members:", "    yield " + '"left" if isinstance(x, (int, str, tuple)) else "right"']
    code = source(*lines, *spelled, 'yield "stay" if same else "left"')
    seen = []
    for mode in ("locked", "locked", "trusted"):
        host = open_host(WORLD, lanes=16, mode=mode, seed=1)
        load(host, code)
        told = [begin(host, 0)[0].command]
        while told[-1] is not None:
            told.append(host.tick([Ask(0, packed(0), resume=True)])[0].command)
        seen.append(told)
        host.close()
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) > 2 and seen[0][-2] == STAY


@pytest.mark.parametrize("line", ["x = [1].index(act)", "x = range(3).index(act)", "{}[act]", "raise ValueError(act)"])
def test_no_address_is_in_a_message(line: str, host: Host) -> None:
    load(host, source('view = yield "stay"', line, 'yield "stay"'))
    begin(host, 0)
    said = host.tick([Ask(0, packed(0), resume=True)])[0].message
    assert said.startswith(("line 3: ValueError", "line 3: KeyError"))
    assert "0x" not in said


def test_memory_that_ran_out_is_not_caught(locked_host: Host) -> None:
    """How much is left depends on the other lanes, so no code may decide by it."""
    lines = [
        "xs = []",
        "try:",
        "    while True:",
        "        xs.append('x' * 10000000)",
        "except Exception:",
        "    xs = []",
    ]
    load(locked_host, source('view = yield "stay"', *lines, 'yield "left"'))
    begin(locked_host, 0)
    assert locked_host.tick([Ask(0, packed(0), resume=True)])[0].end == "killed"


DEEP = """
def depth(n):
    if n <= 0:
        return "left"
    try:
        return depth(n - 1)
    except RuntimeError:
        return "right"


def act(view):
    view = yield "stay"
    while True:
        view = yield depth(view.coins)
"""


def test_how_deep_code_may_recurse_does_not_depend_on_who_asks(host: Host) -> None:
    """Nor may it find out: the end of the stack is no error that it could catch."""
    load(host, DEEP, plan=[("view.at > 100", DEEP)], predicates=["view.at > 100"])
    whole = packed(0, whole=True)

    def deepest(index: int, asked: bool) -> int:
        for depth in range(380, 410):
            host.tick([Ask(0, whole, open=index, episode_start=True)])
            ask = Ask(0, packed(0, depth), resume=True, predicates=asked, available=asked)
            answer = host.tick([ask])[0]
            if answer.end is not None:
                assert answer.end == "error" and "RecursionError" in answer.message
                return depth
            assert answer.command == LEFT
        raise AssertionError("there is no end")

    found = {deepest(index, asked) for index in (0, FOLLOW_PLAN) for asked in (False, True)}
    assert len(found) == 1 and found.pop() > 390


def test_two_hosts_lie_at_the_same_addresses(shared_host: Host) -> None:
    """Where the kernel allows it, and it says so."""
    said = shared_host.enforced["addresses"]
    assert said.startswith(("enforced", "not available"))
    if not said.startswith("enforced"):
        pytest.skip(said)
    spawned = [spawner().spawn(CHILD) for _ in range(2)]
    try:
        maps = [Path(f"/proc/{each.pid}/personality").read_text() for each in spawned]
    finally:
        for each in spawned:
            os.kill(each.pid, signal.SIGKILL)
            os.waitpid(each.pid, 0)
            for descriptor in each[1:]:
                os.close(descriptor)
    assert all(int(flags, 16) & ADDR_NO_RANDOMIZE for flags in maps)
