"""Removes every right of the calling process that actions do not need. Called once, after all imports.

The order matters: the user is changed first, because that clears the parent-death signal, and seccomp is installed
last, because it forbids the system calls that the other steps make.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

from rlgpt.training.host.sandbox import landlock, libc, seccomp
from rlgpt.training.host.sandbox.seccomp import NotEnforced

MEMORY = 256 << 20
"""Bytes of address space that the process may add to those it has when it is locked."""
NOBODY = 65_534
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS = 1, 4, 38
ENFORCED = "enforced"


def die_with_parent(parent: int) -> str:
    """Have the kernel send SIGKILL when the thread that started this process ends. Exits at once if the process
    `parent` is already gone."""
    state = "not available: only Linux has it; the host still exits when its pipe ends"
    if sys.platform.startswith("linux"):
        _prctl(_SET_PDEATHSIG, signal.SIGKILL)
        state = ENFORCED
    if os.getppid() != parent:
        os._exit(0)
    return state


def limit(memory: int) -> str:
    """Resource limits: bytes of memory; no new descriptors, files, threads, processes or core dumps."""
    for resource_limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 2),
    ):
        resource.setrlimit(resource_limit, (value, value))
    return ENFORCED


def drop_root() -> str:
    """Change to another user than root, because root is exempt from the limit on processes and may signal everyone."""
    if os.geteuid() != 0:
        return f"{ENFORCED} (user {os.geteuid()})"
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError as error:
        return f"not available: the process cannot leave root ({error.strerror})"
    return f"{ENFORCED} (user {NOBODY} instead of root)"


def lock(parent: int, requests: int, replies: int) -> dict[str, str]:
    """Apply all protections, on Linux. Returns protection -> state. Raises NotEnforced when one that the mode `locked`
    promises is refused by the kernel."""
    memory = address_space() + MEMORY
    enforced = {"user": drop_root(), "parent death": die_with_parent(parent), "addresses": addresses()}
    _prctl(_SET_DUMPABLE, 0)
    _prctl(_SET_NO_NEW_PRIVS, 1)
    enforced["no_new_privs"] = ENFORCED
    # Landlock needs one more descriptor, so it comes before the limits.
    enforced["landlock"] = landlock.restrict()
    enforced["limits"] = limit(memory)
    seccomp.install(requests, replies)
    enforced["seccomp"] = ENFORCED
    return enforced


def addresses() -> str:
    """State of the fixed memory layout, which the spawner requests so that addresses do not differ between
    processes."""
    fixed = libc.call("personality", 0xFFFFFFFF) & 0x0040000
    return f"{ENFORCED} (not random)" if fixed else "not available: the kernel does not let the addresses be fixed"


def _prctl(option: int, value: int) -> None:
    if libc.call("prctl", option, value, 0, 0, 0):
        raise NotEnforced(f"the kernel refused prctl {option} (errno {ctypes.get_errno()})")


def address_space() -> int:
    """Bytes of address space in use."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 (pathlib is slow to import)
        return int(file.read().split()[0]) * resource.getpagesize()
