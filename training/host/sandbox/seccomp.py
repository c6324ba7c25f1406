"""A seccomp filter: it allows the system calls that a computing Python needs, answers "no such file" to the two that
open files, and kills the process at every other call.

Classic BPF over `struct seccomp_data`: offset 0 the call's number, 4 the architecture, 16 + 8 i the low half
of argument i. The filter allows reading from the request pipe, writing to the reply pipe, and memory that
cannot be executed; it is installed for every thread at once.

CPython tries to open the file of a source to quote the line of a syntax error, also of a source that never was a file
(`_PyErr_ProgramDecodedTextObject`), and continues without the line if it cannot. So opening must fail instead of kill:
the kernel answers ENOENT without looking at the path.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from struct import pack

from rlgpt.training.host.sandbox import libc

_SET_MODE_FILTER, _FLAG_TSYNC = 1, 1
_ALLOW, _KILL_PROCESS, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_PROT_EXEC = 4
_X32 = 0x40000000

_ANY, _FD, _NO_EXEC = range(3)
"""Which argument is checked: none; the first is this descriptor; the third has no PROT_EXEC."""

CALLS = (
    "read", "readv", "write", "mmap", "mprotect", "munmap", "mremap", "madvise", "brk", "futex",
    "rt_sigreturn", "restart_syscall", "clock_gettime", "getrusage", "exit", "exit_group",
)  # fmt: skip
MISSING = ("open", "openat")
"""Calls that fail with ENOENT. aarch64 has no `open`."""

NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "read": 0, "readv": 19, "write": 1, "mmap": 9, "mprotect": 10, "munmap": 11, "mremap": 25,
        "madvise": 28, "brk": 12, "futex": 202, "rt_sigreturn": 15, "restart_syscall": 219,
        "clock_gettime": 228, "getrusage": 98, "exit": 60, "exit_group": 231, "open": 2, "openat": 257,
    },
    "aarch64": {
        "read": 63, "readv": 65, "write": 64, "mmap": 222, "mprotect": 226, "munmap": 215, "mremap": 216,
        "madvise": 233, "brk": 214, "futex": 98, "rt_sigreturn": 139, "restart_syscall": 128,
        "clock_gettime": 113, "getrusage": 165, "exit": 93, "exit_group": 94, "openat": 56,
    },
}  # fmt: skip
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SECCOMP = {"x86_64": 317, "aarch64": 277}


class NotEnforced(OSError):
    """The kernel refused a protection; the reason is the argument."""


def program(machine: str, requests: int, replies: int) -> bytes:
    """The filter for `machine`: an array of `struct sock_filter`."""
    numbers = NUMBERS[machine]
    kill, allow = _op(_RETURN, _KILL_PROCESS), _op(_RETURN, _ALLOW)
    code = [
        _op(_LOAD, 4),
        _op(_EQUAL, AUDIT[machine], 1, 0),
        kill,
        _op(_LOAD, 0),
        _op(_AT_LEAST, _X32, 0, 1),
        kill,
    ]
    for call in CALLS:
        match call:
            case "read" | "readv" | "write":
                descriptor = replies if call == "write" else requests
                check = [_op(_LOAD, 16), _op(_EQUAL, descriptor, 0, 1), allow, kill]
            case "mmap" | "mprotect":
                check = [_op(_LOAD, 32), _op(_ANY_BIT, _PROT_EXEC, 1, 0), allow, kill]
            case _:
                check = [allow]
        code += [_op(_EQUAL, numbers[call], 0, len(check)), *check]
    for call in MISSING:
        if call in numbers:
            code += [_op(_EQUAL, numbers[call], 0, 1), _op(_RETURN, _FAIL | errno.ENOENT)]
    return b"".join([*code, kill])


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return pack("<HBBI", code, if_true, if_false, value)


def install(requests: int, replies: int) -> None:
    """Install the filter, for ever. The process must have no_new_privs. Raises NotEnforced."""
    machine = os.uname().machine if sys.maxsize > 1 << 32 else "32-bit"
    if machine not in NUMBERS:
        raise NotEnforced(f"there is no system call table for {machine}")
    filters = program(machine, requests, replies)
    buffer = ctypes.create_string_buffer(filters, len(filters))
    header = ctypes.create_string_buffer(pack("@HP", len(filters) // 8, ctypes.addressof(buffer)))
    status = libc.call("syscall", SECCOMP[machine], _SET_MODE_FILTER, _FLAG_TSYNC, header)
    if status:
        raise NotEnforced(f"the kernel refused the seccomp filter (errno {ctypes.get_errno()})")
