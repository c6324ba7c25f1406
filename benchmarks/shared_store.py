"""A team's store under load: the list of its sessions, pushes of many keepers and polls of many consoles.

`python -P benchmarks/shared_store.py ADDRESS [SESSIONS [SECONDS]]`, ADDRESS of an empty database that you own. Every
keeper and every console is a process of its own, with one and two connections: the server must take 200. All begin
within five seconds, and what they do then is counted too.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from typing import Any, NamedTuple

from rlgpt.store import catalog, creation, events, tables
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.peers import Batch
from rlgpt.store.settings import Settings
from rlgpt.store.shared import admin
from rlgpt.store.shared.connection import connect
from rlgpt.store.shared.peer import SharedPeer
from rlgpt.store.shared.store import SharedStore
from rlgpt.store.writer import Writer

ROWS = 640
KEEPERS, CONSOLES = 100, 50
PUSH, POLL, LIST = 1.0, 0.5, 2.0
"""Seconds between two of each."""
MEASURED = ("push", "poll", "first list", "list")
BEGIN = 5.0
"""Seconds within which all of them begin."""


class Log(NamedTuple):
    """What one keeper or console measured. The clock is the same in all processes of a machine."""

    seconds: dict[str, list[float]]
    pushed: dict[tuple[str, int], float]
    """When the push of a row of a session began."""
    read: list[tuple[str, int, float]]
    """Session, row, and when a console had it."""
    fault: str


def template() -> SessionFolder:
    settings = Settings.model_validate({"task": "collect_wood"})
    session = creation.create(settings, task_info={"horizon": 500}, world_version="1", versions={})
    with Writer(session) as writer, writer.transaction() as tx:
        tx.event(events.Started())
        tx.add(tables.Iteration(sub_task=0, number=0))
        run = {"sub_task": 0, "iteration": 0, "revision": 1, "config_hash": "", "env_steps_planned": 10**6}
        tx.add(tables.TrainingRun(run=1, **run))
        for update in range(1, ROWS - 3):
            numbers = {"update": update, "env_steps": 2048 * update, "decisions": 1000 * update}
            tx.add(tables.Metric(run=1, episodes=4, successes=2, return_mean=0.5, rewards={"goal": 2.0}, **numbers))
    return session


def renamed(batch: Batch, ident: str, by: int = 0) -> Batch:
    """The same rows as another session's, `by` rows further on."""
    rows = {}
    for table, found in batch.rows.items():
        columns = batch.columns[table]
        name, seq = columns.index("session_id"), columns.index("seq")
        changed = []
        for row in found:
            values = list(row)
            values[name], values[seq] = ident, row[seq] + by
            changed.append(tuple(values))
        rows[table] = changed
    return batch._replace(first=batch.first + by, last=batch.last + by, rows=rows)


def told(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    print(
        f"{name}: n {len(ordered)}, p50 {1e3 * statistics.median(ordered):.1f} ms, p99 {1e3 * p99:.1f} ms", flush=True
    )


def timed(work: Callable[[], Any], into: list[float]) -> Any:
    began = time.perf_counter()
    found = work()
    into.append(time.perf_counter() - began)
    return found


def load(address: str, ids: list[str], session: SessionFolder, whole: Batch) -> None:
    summary = catalog.summary(session)
    began = time.perf_counter()
    with connect(address) as base:
        for ident in ids:
            peer = SharedPeer(base, address, ident)
            peer.claim()
            peer.append(renamed(whole, ident))
            peer.tell(None, dataclasses.replace(summary, id=ident))
            peer.release()
    seconds = time.perf_counter() - began
    print(
        f"{len(ids)} sessions of {ROWS} rows pushed in {seconds:.1f} s, {admin.total(address) / 1e6:.0f} MB", flush=True
    )


def keep(address: str, ident: str, session: SessionFolder, log: Log, ending: Event) -> None:
    """As a keeper does: push what is new, and tell how far the session is."""
    whole = FolderPeer(session.path).since(0, set(), 10**6)
    last = whole.rows["metric"][-1]
    one = whole._replace(
        first=whole.last - 1, rows={"metric": [last]}, columns={"metric": whole.columns["metric"]}, texts=[]
    )
    summary = dataclasses.replace(catalog.summary(session), id=ident)
    peer = SharedPeer(connect(address), address, ident)
    peer.claim()
    by = 1
    while not ending.wait(PUSH):
        batch = renamed(one, ident, by)
        log.pushed[ident, batch.last] = time.perf_counter()
        timed(lambda batch=batch: peer.append(batch), log.seconds["push"])
        peer.tell(None, dataclasses.replace(summary, env_steps=by))
        by += 1


def look(address: str, ident: str, session: SessionFolder, log: Log, ending: Event) -> None:
    """As a console does that shows the list, and the follower beside it."""
    lists = threading.Thread(target=show_list, args=(address, log, ending))
    lists.start()
    peer = SharedPeer(connect(address), address, ident)
    behind = timed(lambda: peer.since(FolderPeer(session.path).head().seq, set()), log.seconds["poll"])
    while not ending.wait(POLL):
        batch = timed(lambda seq=behind.last: peer.since(seq, set()), log.seconds["poll"])
        log.read.extend((ident, n, time.perf_counter()) for n in range(behind.last + 1, batch.last + 1))
        behind = batch
    lists.join()


def show_list(address: str, log: Log, ending: Event) -> None:
    store = SharedStore(address)
    timed(store.summaries, log.seconds["first list"])
    while not ending.wait(LIST):
        timed(store.summaries, log.seconds["list"])


def crowd(address: str, ids: list[str], session: SessionFolder, seconds: float) -> None:
    """Keepers and consoles at once."""
    fork = multiprocessing.get_context("fork")  # 150 new interpreters would take longer to begin than to measure
    ending, results = fork.Event(), fork.SimpleQueue()

    def run(work: Callable[..., None], ident: str, offset: float) -> None:
        log = Log({name: [] for name in MEASURED}, {}, [], "")
        ending.wait(offset)
        try:
            work(address, ident, session, log, ending)
        except Exception as error:
            log = log._replace(fault=f"{type(error).__name__}: {error}")
        results.put(log)

    keepers = min(KEEPERS, len(ids))
    words = [(keep, ids[n], n * BEGIN / keepers) for n in range(keepers)]
    words += [(look, ids[n % keepers], n * BEGIN / CONSOLES) for n in range(CONSOLES)]
    processes = [fork.Process(target=run, args=arguments) for arguments in words]
    for process in processes:
        process.start()
    time.sleep(seconds)
    ending.set()
    logs = [results.get() for _ in processes]
    for process in processes:
        process.join()

    faults = [log.fault for log in logs if log.fault]
    pushed = {place: at for log in logs for place, at in log.pushed.items()}
    print(
        f"{keepers} keepers push each second, {CONSOLES} consoles poll, each a process: {seconds:.0f} s, "
        f"{len(faults)} errors {faults[:1]}"
    )
    for name in MEASURED:
        told(name, [second for log in logs for second in log.seconds[name]])
    told("push begun -> read by a console", [at - pushed[ident, n] for log in logs for ident, n, at in log.read])


def main(address: str, count: int, seconds: float) -> None:
    os.environ["RLGPT_HOME"] = tempfile.mkdtemp(prefix="rlgpt-bench-")
    admin.init(address)
    session = template()
    ids = [f"260101-000000-{number:05d}" for number in range(count)]
    load(address, ids, session, FolderPeer(session.path).since(0, set(), 10**6))
    first: list[float] = []
    for _ in range(5):
        assert len(timed(SharedStore(address).summaries, first)) == count
    told(f"first list of {count} sessions, at rest", first)
    store = SharedStore(address)
    store.summaries()
    again: list[float] = []
    for _ in range(50):
        timed(store.summaries, again)
    told("the same again", again)
    store.close()
    crowd(address, ids, session, seconds)


if __name__ == "__main__":
    main(sys.argv[1], int((sys.argv[2:3] or ["1000"])[0]), float((sys.argv[3:4] or ["60"])[0]))
