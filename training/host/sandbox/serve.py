"""The main loop of a host process: it locks itself down, then answers frames until its pipe ends."""

from __future__ import annotations

import gc
import importlib.util
import mmap
import os
import signal
import sys
import unicodedata  # noqa: F401  (the parser needs it for names that are not ASCII, and cannot load it later)
import warnings
from types import ModuleType

from rlgpt.training.host import wire
from rlgpt.training.host.sandbox.engine import Engine
from rlgpt.training.host.sandbox.lockdown import ENFORCED, die_with_parent, lock
from rlgpt.training.host.sandbox.seccomp import NotEnforced
from rlgpt.training.host.spin_wait import REPLIED, REQUESTED, SpinWait
from rlgpt.training.host.wire import FRAME, UNLOCKED, Reader, Writer

REQUESTS, REPLIES, ERRORS, PAGE = range(4)
"""File descriptors: two pipes; standard error, closed by the lock; the shared page, closed once it is mapped."""
COLLECTED = 1_000, 20, 100
"""Thresholds of the garbage collector, which counts objects, not bytes: the cycles that a helper which calls itself
leaves behind in each env step may hold a map each."""
_MAX_LOOKS = 8_000
"""Looks at the page before waiting on the pipe, about 300 us: the time between two messages while the worker chooses
actions and steps its envs."""


def serve(parent: int) -> None:
    """Serve until the trusted side closes its pipe. `parent` is the process id of the trusted side; where it is not
    this process's parent any more, the process exits."""
    page, buffer = begin()
    message = receive(buffer)
    if message is None:
        return
    engine, mode = _make_engine(message[2], page)
    spin_wait = SpinWait(page, REQUESTED, _MAX_LOOKS)
    enforced = {"language": ENFORCED, "environment": ENFORCED, "descriptors": ENFORCED, **lock_down(mode, parent)}
    send(message[0], wire.HELLO, encode_protections(enforced))
    try:
        while (message := receive(buffer)) is not None:
            sequence, kind, body = message
            send(sequence, kind, engine.reply(kind, body))
            page[REPLIED] = sequence & 0xFF
            spin_wait.wait_for(sequence + 1)
    except MemoryError:
        os._exit(wire.OUT_OF_MEMORY)
    except BaseException:
        # `os._exit`, because the interpreter's own shutdown makes system calls for which the source would be blamed.
        os._exit(wire.FAILED)
    os._exit(0)


def begin() -> tuple[mmap.mmap, memoryview]:
    """Close every descriptor but the two pipes and standard error; returns the shared page and a buffer for
    messages."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")
    page = mmap.mmap(PAGE, mmap.PAGESIZE)
    os.closerange(PAGE, os.sysconf("SC_OPEN_MAX"))
    return page, memoryview(bytearray(1 << 17))


def lock_down(mode: str, parent: int) -> dict[str, str]:
    """Apply the protections of the mode. Returns protection -> state; with the key `UNLOCKED`, why the lock failed: the
    trusted side then ends this host."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    os.close(ERRORS)
    sys.stderr = None
    if mode != "locked":
        return {"parent death": die_with_parent(parent), "system": f"not enforced: mode {mode} has no lock"}
    try:
        return lock(parent, REQUESTS, REPLIES)
    except NotEnforced as error:
        return {UNLOCKED: str(error)}


def encode_protections(enforced: dict[str, str]) -> bytes:
    """The body of the reply to the first message: protection -> state."""
    out = Writer().number(len(enforced))
    for protection, state in enforced.items():
        out.text(protection).text(state)
    return out.done()


def _make_engine(hello: memoryview, page: mmap.mmap) -> tuple[Engine, str]:
    """The engine and the mode that the first message describes."""
    read = Reader(hello)
    lanes, seed, mode, name, path = read.number(1, 4096), read.number(), read.text(), read.text(), read.text()
    for _ in range(read.number(0, 64)):
        _stub_package(read.text(), [read.text() for _ in range(read.number(0, 16))])
    read.end()
    return Engine(_load_module(name, path), lanes, seed, page), mode


def _stub_package(name: str, paths: list[str]) -> None:
    """Register a package without running its `__init__`, so that the host imports only the standard library and the
    named module."""
    module = ModuleType(name)
    module.__path__ = paths
    sys.modules[name] = module


def _load_module(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def receive(view: memoryview) -> tuple[int, int, memoryview] | None:
    """(sequence, kind, body) of the next frame; None when the trusted side has closed its end."""
    received = os.readv(REQUESTS, [view])
    while 0 < received < FRAME.size:
        count = os.readv(REQUESTS, [view[received:]])
        received = received + count if count else 0
    if not received:
        return None
    size, sequence, kind = FRAME.unpack_from(view)
    end = FRAME.size + size
    if end > len(view):
        whole = memoryview(bytearray(end))
        whole[:received] = view[:received]
        view = whole
    while received < end:
        count = os.readv(REQUESTS, [view[received:end]])
        if not count:
            return None
        received += count
    return sequence, kind, view[FRAME.size : end]


def send(sequence: int, kind: int, body: bytes) -> None:
    frame = FRAME.pack(len(body), sequence, kind) + body
    sent = os.write(REPLIES, frame)
    while sent < len(frame):
        sent += os.write(REPLIES, frame[sent:])
