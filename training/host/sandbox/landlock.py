"""Landlock: forbids this process to open files, to use TCP ports and abstract sockets, and to signal other processes.

The constants are those of <linux/landlock.h>. Rights that the kernel is too old for are left out, and the state that
`restrict` returns says so.
"""

from __future__ import annotations

import ctypes
from struct import pack

from rlgpt.training.host.sandbox import libc

_CREATE, _RESTRICT, _VERSION = 444, 446, 1
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""ABI -> number of file system rights, from the lowest bit."""
_TCP_SINCE, _SCOPES_SINCE = 4, 6
_BIND_AND_CONNECT = _ABSTRACT_SOCKETS_AND_SIGNALS = 3


def restrict() -> str:
    """Restrict the calling thread as far as this kernel can. Returns `enforced` with the ABI, or why it is not
    available."""
    abi = libc.call("syscall", _CREATE, None, 0, _VERSION)
    if abi < 1:
        return f"not available: the kernel has no Landlock (errno {ctypes.get_errno()})"
    files = (1 << max(count for abi_since, count in _FILE_RIGHTS.items() if abi_since <= abi)) - 1
    attributes = pack("<Q", files)
    if abi >= _TCP_SINCE:
        attributes += pack("<Q", _BIND_AND_CONNECT)
    if abi >= _SCOPES_SINCE:
        attributes += pack("<Q", _ABSTRACT_SOCKETS_AND_SIGNALS)
    ruleset = libc.call("syscall", _CREATE, attributes, len(attributes), 0)
    if ruleset < 0:
        return f"not available: the kernel refused the rules (errno {ctypes.get_errno()})"
    if libc.call("syscall", _RESTRICT, ruleset, 0):
        return f"not available: the kernel refused to restrict (errno {ctypes.get_errno()})"
    return f"enforced (ABI {abi}{', no TCP rules' if abi < _TCP_SINCE else ''})"
