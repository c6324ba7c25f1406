"""Functions of the C library that ask the kernel for something."""

from __future__ import annotations

import ctypes


def call(function: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """What the function returns; -1 where the kernel refused, see `ctypes.get_errno`.

    Numbers are passed as longs: `syscall` and `prctl` are variadic and read longs, and of a bare int the upper half of
    its register is undefined (https://docs.python.org/3/library/ctypes.html#calling-variadic-functions): with Python
    3.12 the kernel was seen to refuse such calls.
    """
    longs = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    result: int = getattr(ctypes.CDLL(None, use_errno=True), function)(*longs)
    return result
