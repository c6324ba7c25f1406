"""Following a session without a console: lines for people, or one JSON object per event, until it ends."""

from __future__ import annotations

import time

from rlgpt.console.commands import output
from rlgpt.console.commands.children import START_PATIENCE
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.progress import Progress
from rlgpt.store.address import source_of
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import History, fold
from rlgpt.store.lease import Lease
from rlgpt.store.placing import placed_on
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import EventRow
from rlgpt.store.states import SIGNALLED

EVERY = 0.2
"""Seconds between looks."""


def follow(session: SessionFolder, *, json: bool = False, quiet: bool = False, after: int = 0) -> Exit:
    """Wait for the end; returns the exit code that tells it. Ctrl-C leaves the session running."""
    history, progress = History(), Progress()
    last, seen_alive = time.monotonic(), False
    if not json and not quiet:
        hint = f"Ctrl-C leaves it running, `rlgpt stop {session.id}` ends it"
        output.say(f"session {session.id} ({session.name}); {hint}")
    with Reader(session) as reader:
        try:
            while True:
                alive = Lease.held(session.path)
                if alive:
                    last, seen_alive = time.monotonic(), True
                _take_new(reader, history, progress, json=json, quiet=quiet, after=after)
                if history.status == "ended" and not alive:  # one that was just resumed has not said so yet
                    break
                known = seen_alive and not _is_mirror(session)
                if not alive and (known or time.monotonic() - last > START_PATIENCE):
                    if not session.log.exists() and unstarted(reader):
                        sentence = f"no worker was ever started for {session.id}; `rlgpt resume {session.id}` starts it"
                        raise Failure(sentence, Exit.REFUSED)
                    if not session.database.exists():
                        raise Failure(f"session {session.id} was deleted or moved.", Exit.NOT_FOUND)
                    raise Failure(_death(session, history), Exit.FAILED)
                time.sleep(EVERY)
        except KeyboardInterrupt as error:
            sentence = f"the session goes on; `rlgpt attach {session.id}` opens it"
            raise Failure(sentence, Exit.INTERRUPTED) from error
    if json:
        output.record({"id": session.id, "status": history.result, "reason": history.reason})
    else:
        output.say(f"{session.id} {history.result}: {history.reason}")
    return code_of(history)


def _is_mirror(session: SessionFolder) -> bool:
    """Its lock is free for a moment, too, when the console that kept it up is left and another takes over."""
    return bool(source_of(session.path)) and not placed_on(session.path)


def code_of(history: History) -> Exit:
    """The exit code of an ended session."""
    if history.result in ("failed", "stopped"):
        return Exit.FAILED if history.result == "failed" else Exit.STOPPED
    return Exit.BUDGET if history.result == "finished" and "budget" in history.reason else Exit.OK


def _take_new(reader: Reader, history: History, progress: Progress, *, json: bool, quiet: bool, after: int) -> None:
    while rows := reader.changes_since(history.seq, 1000, without=("frame", "episode")):
        for change in rows:
            fold(history, *change)
            if quiet or change[1]["seq"] <= after:
                continue
            if json:
                if change[0] == "event":
                    event = change[1]
                    stamp = {"seq": event["seq"], "at": event["at"], "active": event["active"]}
                    output.record({**stamp, "kind": event["kind"], "payload": event["payload"]})
            elif sentence := progress.sentence(history, change):
                output.say(f"{_clock(change[1]['active'])}  {sentence}")


def _clock(active: float) -> str:
    whole = int(active)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def unstarted(reader: Reader) -> bool:
    """A fork that no worker has run yet: it takes the commands that make it another session."""
    last = reader.rows(EventRow, newest_first=True, limit=1)
    return bool(last) and last[0]["kind"] == "forked"


def is_dead(folder: SessionFolder) -> bool:
    """Whether no worker has a session that has not ended; a fork that none has run yet is not dead."""
    if Lease.held(folder.path):
        return False
    with Reader(folder) as reader:
        return reader.history_at().status != "ended" and not unstarted(reader)


def is_cut_off(folder: SessionFolder) -> bool:
    """Whether a session is dead, or was ended by a signal alone: a machine that is shut down sends one to every process
    before it kills what is left."""
    if Lease.held(folder.path):
        return False
    with Reader(folder) as reader:
        history = reader.history_at()
        if history.status == "ended":
            return history.result == "stopped" and history.reason == SIGNALLED
        return not unstarted(reader)


def _death(session: SessionFolder, history: History) -> str:
    words = session.log.read_text(errors="replace").strip().splitlines() if session.log.exists() else []
    last = f"; its last words: {words[-1]}" if words else ""
    return f"the worker of {session.id} died in seq {history.seq}{last}; `rlgpt resume {session.id}` goes on"
