"""The attacks of `doctor`: one function for each thing that escaped code could try inside a locked host.

Each function is called in a locked process with a `Target` that the trusted side has prepared. It returns a sentence if
the attack worked. An attack has failed if the kernel refuses it (OSError) or kills the process.
This module is imported before the lock, so everything it needs is imported here.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rlgpt.training.host.sandbox import libc


class Target(NamedTuple):
    """Things outside the host that an attack tries to reach."""

    parent: int
    """Process id of the trusted side."""
    secret: str
    """A readable file."""
    tcp: int
    """A listening TCP port on 127.0.0.1."""
    udp: int
    unix: str
    """Path of a listening unix socket."""


class Attack(NamedTuple):
    protection: str
    """What the operator is promised."""
    run: Callable[[Target], str]
    locked: bool = True
    """False: it inspects what the process inherited, and runs before the lock, which forbids inspecting."""


def read_file(target: Target) -> str:
    return f"read {len(Path(target.secret).read_text())} characters"


def write_file(target: Target) -> str:
    return f"wrote {Path(target.secret + '.new').write_text('x')} character"


def list_folder(target: Target) -> str:
    return f"listed {len(list(Path('/').iterdir()))} entries"


def tcp(target: Target) -> str:
    with socket.create_connection(("127.0.0.1", target.tcp), 1):
        return "connected by TCP"


def udp(target: Target) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return f"sent {sock.sendto(b'x', ('127.0.0.1', target.udp))} byte by UDP"


def unix_socket(target: Target) -> str:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(target.unix)
        return "connected to a unix socket"


def execute(target: Target) -> str:
    os.execv("/bin/true", ["/bin/true"])


def fork(target: Target) -> str:
    child = os.fork()
    if child == 0:
        os._exit(0)
    return "started a process"


def thread(target: Target) -> str:
    started = threading.Thread(target=int)
    started.start()
    started.join()
    return "started a thread"


def signal_parent(target: Target) -> str:
    os.kill(target.parent, signal.SIGCONT)
    return "sent a signal to the trusted side"


def trace_parent(target: Target) -> str:
    return _call(_TRACE[os.uname().machine], _SEIZE, target.parent, 0, 0, result="traced the trusted side")


def read_parent_memory(target: Target) -> str:
    return _call(
        _READ_MEMORY[os.uname().machine], target.parent, 0, 0, 0, 0, 0, result="may read the trusted side's memory"
    )


def io_uring(target: Target) -> str:
    parameters = ctypes.create_string_buffer(120)
    return _call(425, 1, parameters, result="set up io_uring")


def new_descriptor(target: Target) -> str:
    return f"got descriptors {os.pipe()}"


def machine_code(target: Target) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    mapped = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0))
    if mapped in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap")
    return "mapped memory that can be executed"


def become_root(target: Target) -> str:
    os.setresuid(0, 0, 0)
    return "became root"


def environment(target: Target) -> str:
    surplus = set(os.environ) - {"PYTHONHASHSEED", "PYTHONUTF8", "MALLOC_ARENA_MAX", "LC_CTYPE"}
    return f"found {', '.join(sorted(surplus))} in its environment" if surplus else ""


def inherited_descriptors(target: Target) -> str:
    # Errors go to the trusted side's log until the lock; the listing itself is gone when it is looked at.
    names = [link.name for link in Path("/proc/self/fd").iterdir() if link.name not in "012"]
    still = [name for name in names if Path("/proc/self/fd", name).exists()]
    return f"found open descriptors {still}" if still else ""


def memory(target: Target) -> str:
    blocks = []
    for _ in range(1024):
        blocks.append(bytearray(1 << 20))
    return f"held {len(blocks)} MB"


def endless(target: Target) -> str:
    while True:
        pass


def crash(target: Target) -> str:
    ctypes.string_at(8)
    return "read address 8"


ATTACKS: dict[str, Attack] = {
    "read file": Attack("cannot read files", read_file),
    "write file": Attack("cannot write files", write_file),
    "list folder": Attack("cannot list folders", list_folder),
    "environment": Attack("sees no environment variable of the trusted side", environment, locked=False),
    "descriptors": Attack("inherits nothing but its two pipes", inherited_descriptors, locked=False),
    "tcp": Attack("cannot connect by TCP", tcp),
    "udp": Attack("cannot send by UDP", udp),
    "unix socket": Attack("cannot reach unix sockets", unix_socket),
    "exec": Attack("cannot start programs", execute),
    "fork": Attack("cannot start processes", fork),
    "thread": Attack("cannot start threads", thread),
    "signal": Attack("cannot signal the trusted side", signal_parent),
    "ptrace": Attack("cannot trace the trusted side", trace_parent),
    "memory of parent": Attack("cannot read the trusted side's memory", read_parent_memory),
    "io_uring": Attack("cannot go around the filter by io_uring", io_uring),
    "new descriptor": Attack("cannot open descriptors", new_descriptor),
    "machine code": Attack("cannot make memory executable", machine_code),
    "root": Attack("cannot become root", become_root),
    "memory": Attack("cannot use much memory", memory),
    "endless loop": Attack("cannot hang the training", endless),
    "crash": Attack("cannot crash the training", crash),
}

_SEIZE = 0x4206
_TRACE = {"x86_64": 101, "aarch64": 117}
_READ_MEMORY = {"x86_64": 310, "aarch64": 270}


def _call(number: int, *arguments: int | ctypes.Array[ctypes.c_char], result: str) -> str:
    if libc.call("syscall", number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
