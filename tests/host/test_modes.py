"""Which host one gets: exactly the one asked for, or a sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rlgpt.training.host.api import Host
from rlgpt.training.host.client.errors import HostError, ModeUnavailable
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.host.sandbox import seccomp
from tests.host.driving import COUNT, begin, counted, load
from tests.host.world import WORLD


def test_locked_says_what_it_enforced(shared_host: Host) -> None:
    assert shared_host.mode == "locked"
    expected = {"language", "environment", "descriptors", "user", "parent death", "no_new_privs", "landlock", "limits"}
    assert set(shared_host.enforced) == expected | {"seccomp", "addresses"}
    required = expected - {"landlock", "user"} | {"seccomp"}
    assert all(shared_host.enforced[name] == "enforced" for name in required)


def test_process_needs_its_flag() -> None:
    with pytest.raises(ModeUnavailable, match="without an operating-system lock"):
        open_host(WORLD, lanes=1, mode="process", seed=1)


def test_process_says_that_it_has_no_lock() -> None:
    host = open_host(WORLD, lanes=1, mode="process", seed=1, allow_process=True)
    assert host.enforced["system"].startswith("not enforced")
    assert "seccomp" not in host.enforced
    load(host, COUNT)
    assert begin(host, 0)[0].command == counted(1)
    host.close()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(HostError, match="choose one of"):
        open_host(WORLD, lanes=1, mode="safe", seed=1)  # type: ignore[arg-type]


def test_locked_is_refused_where_there_is_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ModeUnavailable, match="needs Linux"):
        open_host(WORLD, lanes=1, mode="locked", seed=1)


def test_a_machine_without_a_table_is_not_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "NUMBERS", {})
    with pytest.raises(seccomp.NotEnforced, match="no system call table"):
        seccomp.install(0, 1)


def test_nothing_in_the_product_reaches_the_unguarded_host() -> None:
    """Only a test can start a process by another script; no mode, flag or setting does."""
    found = subprocess.run(
        ["grep", "-rl", "-E", "spawned_host|tests.host", "--include=*.py", "console", "agents", "training", "store"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert found == ["training/host/client/open_host.py"]


def test_a_host_imports_nothing_it_does_not_need() -> None:
    """The parent finds the modules by path; a package's `__init__` would drag in the trainer."""
    script = (
        "import sys; sys.argv = ['child', '1']\n"
        "import runpy, importlib.abc\n"
        "seen = []\n"
        "class Watch(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None): seen.append(name.partition('.')[0])\n"
        "sys.meta_path.insert(0, Watch())\n"
        "try: runpy.run_path('training/host/sandbox/child.py')\n"
        "except BaseException: pass\n"
        "print(sorted(set(seen) - set(sys.stdlib_module_names)))\n"
    )
    flags = ["-P", "-s", "-S", "-c"]
    command = [sys.executable, *flags, script]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert shown.stdout.strip() == "['rlgpt']"
