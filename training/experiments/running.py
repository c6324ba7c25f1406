"""Running an experiment's sessions, several at once, each under its own supervisor; telling how far it is.

A session that this process did not start (left behind by an earlier call) is waited for, not started twice.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlgpt.store.errors import StoreError
from rlgpt.store.experiments import Manifest, Planned
from rlgpt.store.folder import SessionFolder, new_id, root, space
from rlgpt.store.history import History
from rlgpt.store.lease import Lease
from rlgpt.store.placing import placed_on
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings, settle, stored
from rlgpt.training.experiments.declared import Undeclared

POLL = 0.5
TELL = 10.0
"""Seconds between two words about the progress."""
GRACE = 20.0
"""Seconds that stopped sessions get to leave."""

Make = Callable[[Mapping[str, Any], str], object]
"""Make a session from a settings tree, under this id."""


class Job(Protocol):
    """What runs a session to its end: a supervisor on this machine, or the process that follows a seat on a cluster."""

    def poll(self) -> int | None:
        """None while it runs."""

    def terminate(self) -> None: ...

    def wait(self, timeout: float | None = None) -> int: ...


Launch = Callable[[SessionFolder], Job]
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Known:
    """What is known of one planned session."""

    planned: Planned
    settings: Settings
    env_steps: int = 0
    status: str = "not started"
    """not started | running | left (has no worker) | succeeded | finished | stopped | failed."""
    reason: str = ""

    @property
    def over(self) -> bool:
        return self.status in ("succeeded", "finished", "failed")

    @property
    def abroad(self) -> bool:
        """Its work is done, but the process that followed it on a cluster was killed and its seat still takes a CPU."""
        done = self.status in ("succeeded", "finished")
        return done and bool(placed_on(folder_of(self.planned).path))

    @property
    def left(self) -> int:
        """Env steps at most."""
        return 0 if self.over else max(0, (self.settings.budget.env_steps or 0) - self.env_steps)

    @property
    def share_done(self) -> float:
        """Of the session, by its env steps: most sessions end before they have used up their budget."""
        return 1.0 if self.over else self.env_steps / max(1, self.env_steps + self.left)


def folder_of(planned: Planned) -> SessionFolder:
    return SessionFolder(root() / planned.id)


def is_gone(planned: Planned) -> bool:
    """Whether its session was made, and deleted or moved away since: it is made again."""
    return bool(planned.id) and not folder_of(planned).path.is_dir()


def require_same_settings(every: Iterable[Known]) -> None:
    """What a declaration leaves open comes from variables and files: they must say what they said when its first
    sessions were made, or arms and seeds differ in what nobody compares. Raises Undeclared."""
    for it in every:
        if it.status == "not started":
            continue
        now, then = (settings.model_dump(mode="json") for settings in (settle(it.planned.settings), it.settings))
        for key in sorted((now.keys() | then.keys()) - {"limits"}):
            if now.get(key) != then.get(key):
                setting = _first_difference(key, then, now)
                raise Undeclared(
                    f"session {it.planned.id} of this experiment was made with another {setting} than variables "
                    "(RLGPT_...) and files ask for now: give what was given then, or choose another --name"
                )


def _first_difference(key: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Without the values: a URL may hold a password."""
    old, new = then.get(key), now.get(key)
    if isinstance(old, dict) and isinstance(new, dict):
        inner = next(name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name))
        return f"{key}.{_first_difference(inner, old, new)}"
    return key


def known(planned: Planned) -> Known:
    """From the rows. Raises Refused for settings that cannot be, StoreError for a session that cannot be read."""
    if not planned.id or is_gone(planned):
        return Known(planned, settle(planned.settings))
    with Reader(folder_of(planned)) as reader:
        return _known_of(planned, reader.history_at(), reader.alive())


def _known_of(planned: Planned, history: History, alive: bool) -> Known:
    status = history.result if history.status == "ended" else "running" if alive else "left"
    return Known(planned, stored(history.session["settings"]), history.spent.env_steps, status, history.reason)


@dataclass
class _Session:
    """One that runs now."""

    planned: Planned
    job: Job | None
    """None: another process started it."""
    reader: Reader

    def alive(self) -> bool:
        if self.job is not None:
            return self.job.poll() is None
        return Lease.held(self.reader.folder.path)

    def known(self) -> Known:
        return _known_of(self.planned, self.reader.history_at(), self.alive())

    def stop(self) -> None:
        if self.job is not None and self.job.poll() is None:
            self.job.terminate()


@dataclass
class Runner:
    manifest: Manifest
    jobs: int
    make: Make
    tell: Tell
    launch: Launch = field(default_factory=lambda: launched)

    def run(self) -> list[Known]:
        """Run every session that is not over, in their order; how each of them is in the end.

        A session that ends without being over (its worker died for good, or somebody stopped it) is left alone
        until the next call, which goes on with it. Raises Undeclared.
        """
        every = {i: known(p) for i, p in enumerate(self.manifest.sessions)}
        waiting = [i for i, k in every.items() if not k.over or k.abroad]
        if waiting:
            require_same_settings(every.values())
        running: dict[int, _Session] = {}
        began, done_before, reported_at = time.monotonic(), _sessions_done(every), 0.0
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    index = waiting.pop(0)
                    running[index] = self._start(self.manifest.sessions[index])
                time.sleep(POLL)
                for index, session in list(running.items()):
                    if not session.alive():
                        every[index] = session.known()
                        del running[index]
                        self._close(session)
                        self._say_ended(every[index])
                if time.monotonic() - reported_at >= TELL:
                    reported_at = time.monotonic()
                    every |= {index: session.known() for index, session in running.items()}
                    done = _sessions_done(every) - done_before
                    self.tell(_progress(every, list(running), reported_at - began, done))
        finally:
            self._leave(list(running.values()))
        return list(every.values())

    def _start(self, planned: Planned) -> _Session:
        if not planned.id or is_gone(planned):
            planned = self._make(planned)
        folder = folder_of(planned)
        reader = Reader(folder)
        self.tell({"kind": "started", "session": planned.id, "words": planned.words})
        if Lease.held(folder.path):
            return _Session(planned, None, reader)
        return _Session(planned, self.launch(folder), reader)

    def _make(self, planned: Planned) -> Planned:
        """Its id is noted first: whenever this process is stopped or killed, the next call finds the session by it, or
        sees that it is not there, and never makes a second one."""
        planned = self.manifest.made(planned, new_id())
        try:
            self.make(planned.settings, planned.id)
        except BaseException:
            if is_gone(planned):
                with contextlib.suppress(OSError):  # the disk may be full, which the other exception says
                    self.manifest.made(planned, "")
            raise
        return planned

    def _say_ended(self, it: Known) -> None:
        reason = it.reason
        if it.status == "left" and not reason:
            full = space(folder_of(it.planned).path) == "none"
            reason = "the disk is full" if full else f"its worker ended without a word: rlgpt logs {it.planned.id}"
        words = {"words": it.planned.words, "status": it.status, "reason": reason, "env_steps": it.env_steps}
        self.tell({"kind": "ended", "session": it.planned.id, **words})

    def _close(self, session: _Session) -> None:
        with contextlib.suppress(StoreError):
            session.reader.close()

    def _leave(self, sessions: list[_Session]) -> None:
        """Stop the sessions that this process started; they can be resumed."""
        for session in sessions:
            session.stop()
        until = time.monotonic() + GRACE
        for session in sessions:
            if session.job is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    session.job.wait(max(0.0, until - time.monotonic()))
            self._close(session)


def launched(folder: SessionFolder) -> subprocess.Popen[bytes]:
    """Here, unless an earlier call left it on a cluster: there it goes on, and is followed."""
    module = "rlgpt.training.cluster" if placed_on(folder.path) else "rlgpt.training.supervisor"
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(folder.path)],
            cwd=folder.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(log)


def _sessions_done(every: Mapping[int, Known]) -> float:
    return sum(k.share_done for k in every.values())


def _progress(every: Mapping[int, Known], running: list[int], seconds: float, done: float) -> dict[str, Any]:
    """`done`: sessions of this call, parts of them included. `seconds_left` supposes that the others take as long as
    these did; None before anything was done."""
    return {
        "kind": "progress",
        "over": sum(k.over for k in every.values()),
        "sessions": len(every),
        "running": [every[i].planned.words for i in running],
        "env_steps": sum(k.env_steps for k in every.values()),
        "env_steps_left": sum(k.left for k in every.values()),
        "seconds_left": round((len(every) - _sessions_done(every)) * seconds / done) if done > 0 else None,
    }
