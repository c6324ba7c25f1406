"""One host process as the trusted side sees it: exchange of frames, watchdog, cause of death."""

from __future__ import annotations

import mmap
import os
import select
import signal
import time
from pathlib import Path

import psutil

from rlgpt.training.host import wire
from rlgpt.training.host.client.spawner import CHILD, spawner
from rlgpt.training.host.spin_wait import REPLIED, REQUESTED, SpinWait
from rlgpt.training.host.wire import FRAME, Reader

CPU_SECONDS = {wire.TICK: 0.25, wire.ADMIT: 1.0, wire.LOAD: 5.0, wire.TRACE: 0.5}
"""Of host CPU time: for one evaluation of a source in a tick, for one step of a dry run, for loading each source, for
one step while the line is found in which a dry run ends the host."""
WALL_SECONDS = {wire.TICK: 10.0, wire.ADMIT: 60.0, wire.LOAD: 10.0, wire.TRACE: 60.0}
"""For one message, on however busy a machine; a dry run has hundreds of steps."""
STOPPED_SECONDS = 10.0
"""For a part of a message whose other part is there."""
START_SECONDS = 30.0
BROKE_PROTOCOL = "broke the protocol"
_SAMPLE_MS = 40
_LONGEST_SAMPLE = 1.0
"""Seconds: a busy machine may make a sample so long, a longer one is a stop."""
_MAX_LOOKS = 8_000
"""Looks at the page before waiting on the pipe, about 300 us: the time of an answer for eight lanes whose code searches
paths."""
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals that come from outside, such as from an operator or from a machine short of memory: neither the trusted side
nor the kernel at a fault sends them."""


class HostDied(Exception):
    """The process is gone. `token` names what it was evaluating; `forbidden`: it made a system call that is not
    allowed.

    `own`: the process itself caused its death, even if the token names no source.
    """

    def __init__(
        self, cause: str, token: bytes, forbidden: bool = False, out_of_memory: bool = False, own: bool = False,
        too_slow: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(cause)
        self.cause, self.token, self.own, self.too_slow = cause, token, own, too_slow
        self.forbidden, self.out_of_memory = forbidden, out_of_memory


class HostProcess:
    """Spawned, not yet ready: `hello` must come first. Not thread-safe. Raises HostDied."""

    def __init__(self, hello: bytes, script: Path = CHILD) -> None:
        try:
            self.pid, self._requests, self._replies, page = spawner().spawn(script)
        except OSError as error:
            raise HostDied(f"could not be started: {error.strerror or error}", wire.IDLE) from None
        self.page = mmap.mmap(page, mmap.PAGESIZE)
        os.close(page)
        self._sequence = 0
        self._spin_wait = SpinWait(self.page, REPLIED, _MAX_LOOKS)
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)
        self._buffer = memoryview(bytearray(1 << 17))
        self._clock = ((~self.pid) << 3) | 2
        self._alive = True
        self.enforced: dict[str, str] = {}
        self._send(wire.HELLO, hello)

    def ready(self) -> HostProcess:
        """Waits until it is locked down and answers; raises HostDied."""
        if not self.enforced:
            read = Reader(self._receive(wire.HELLO, START_SECONDS, START_SECONDS), wire.TEXT_CAP)
            self.enforced = {read.text(): read.text() for _ in range(read.number(0, 64))}
            read.end()
        return self

    def exchange(self, kind: int, body: bytes) -> bytes:
        """The reply's body. Raises HostDied; the process is then reaped."""
        self.begin(kind, body)
        return self.finish(kind)

    def begin(self, kind: int, body: bytes) -> None:
        """Send a message, whose reply `finish` must read before the next."""
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        self._send(kind, body)

    def finish(self, kind: int) -> bytes:
        return self._receive(kind, CPU_SECONDS[kind], WALL_SECONDS[kind])

    def _send(self, kind: int, body: bytes) -> None:
        frame = FRAME.pack(len(body), self._sequence, kind) + body
        try:
            sent = os.write(self._requests, frame)
            if sent < len(frame):
                self._send_rest(memoryview(frame)[sent:])
            self.page[REQUESTED] = self._sequence & 0xFF
        except BlockingIOError:
            self._send_rest(memoryview(frame))
        except OSError:
            raise self._died() from None

    def _send_rest(self, rest: memoryview) -> None:
        writable = select.poll()
        writable.register(self._requests, select.POLLOUT)
        deadline = time.monotonic() + STOPPED_SECONDS
        while rest:
            if time.monotonic() > deadline:
                raise self._killed(f"did not read a message within {STOPPED_SECONDS:g} s")
            if writable.poll(100):
                try:
                    rest = rest[os.write(self._requests, rest) :]
                except BlockingIOError:
                    continue
                except OSError:
                    raise self._died() from None

    def _receive(self, kind: int, cpu_seconds: float, wall_seconds: float) -> bytes:
        buffer = self._buffer
        count = self._first(buffer) if self._spin_wait.wait_for(self._sequence) else -1
        if count < 0:
            if not self._poll.poll(_SAMPLE_MS):
                self._watch(cpu_seconds, wall_seconds)
            count = os.readv(self._replies, [buffer])
        while 0 < count < FRAME.size:
            count += self._more(buffer[count:])
        if not count:
            raise self._died()
        size, sequence, answered = FRAME.unpack_from(buffer)
        if sequence != self._sequence or answered != kind or size > wire.REPLY_CAP:
            raise self._broken()
        end = FRAME.size + size
        if end > len(buffer):
            larger = memoryview(bytearray(end))
            larger[:count] = buffer[:count]
            self._buffer = buffer = larger
        while count < end:
            count += self._more(buffer[count:end])
        if count != end:
            raise self._broken()
        return bytes(buffer[FRAME.size : end])

    def _first(self, buffer: memoryview) -> int:
        """Bytes read without waiting, -1 if the spin_wait lied."""
        try:
            return os.readv(self._replies, [buffer])
        except BlockingIOError:
            return -1

    def _more(self, rest: memoryview) -> int:
        if not self._poll.poll(int(STOPPED_SECONDS * 1000)):
            raise self._killed("stopped in the middle of a message")
        count = os.readv(self._replies, [rest])
        if not count:
            raise self._died()
        return count

    def _watch(self, cpu_seconds: float, wall_seconds: float) -> None:
        """Returns when there is something to read; kills the process when one evaluation takes too long. Time in which
        we were stopped ourselves, and likely the process too, does not count."""
        waited, before = 0.0, time.monotonic()
        token, since = b"", 0.0
        while True:
            now_token, now = bytes(self.page[0 : wire.LINE_AT]), self._cpu()
            if now_token != token:
                token, since = now_token, now
            elif now - since > cpu_seconds:
                raise self._killed(f"was killed after {cpu_seconds * 1000:.0f} ms of CPU time", too_slow=True)
            at = time.monotonic()
            waited, before = waited + min(at - before, _LONGEST_SAMPLE), at
            if waited > wall_seconds:
                raise self._killed(f"was killed after {wall_seconds:g} s", too_slow=True)
            if self._poll.poll(_SAMPLE_MS):
                return

    def _cpu(self) -> float:
        """Seconds of CPU time the process has used; 0 once it is gone."""
        try:
            return time.clock_gettime(self._clock)
        except OSError:
            return 0.0

    def _killed(self, cause: str, too_slow: bool = False) -> HostDied:
        token = bytes(self.page[0:8])
        self.close()
        return HostDied(cause, token, too_slow=too_slow)

    def _broken(self) -> HostDied:
        token = bytes(self.page[0:8])
        self.close()
        return HostDied(BROKE_PROTOCOL, token, own=True)

    def _died(self) -> HostDied:
        """Its pipe has ended: find out why."""
        token = bytes(self.page[0:8])
        status = self._reap(1.0)
        self.close()
        if status is None:
            return HostDied("closed its pipe and was killed", token)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            forbidden = number == signal.SIGSYS
            name = signal.Signals(number).name
            if number in _FROM_OUTSIDE:
                return HostDied(f"was ended from outside with {name}", wire.IDLE)
            cause = "made a system call that actions may not make" if forbidden else f"died with {name}"
            return HostDied(cause, token, forbidden=forbidden)
        code = os.WEXITSTATUS(status)
        if code == wire.OUT_OF_MEMORY:
            return HostDied("ran out of memory", token, out_of_memory=True)
        if code == wire.FAILED:
            return HostDied("failed with an error that nothing caught", token, own=True)
        return HostDied(f"exited with status {code}", token, own=True)

    def _reap(self, seconds: float) -> int | None:
        """Wait status, or None if it still runs after `seconds`."""
        deadline = time.monotonic() + seconds
        while self._alive:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._alive = False
                return status
            if time.monotonic() > deadline:
                return None
            time.sleep(0.001)
        return None

    def cpu_seconds(self) -> float:
        """Of CPU time since its start; 0 once it is gone."""
        return self._cpu()

    def resident(self) -> int:
        """Asked of the kernel, not of the process: a peak that it could tell itself begins with its parent's."""
        try:
            return int(psutil.Process(self.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def close(self) -> None:
        """Kill and reap; may be called again."""
        for descriptor in (self._requests, self._replies):
            if descriptor >= 0:
                os.close(descriptor)
        self._requests = self._replies = -1
        if self._alive:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._alive = False
        if not self.page.closed:
            self.page.close()
