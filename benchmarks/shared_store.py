"""A team's store under load: the list of its sessions, pushes of many keepers and polls of many consoles.

`python -P benchmarks/shared_store.py ADDRESS [SESSIONS [SECONDS]]`, ADDRESS of an empty database that you own. Every
keeper and every console has a connection of its own, so the server needs that many.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

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
    summary = dataclasses.asdict(catalog.summary(session))
    began = time.perf_counter()
    with connect(address) as base:
        for ident in ids:
            peer = SharedPeer(base, address, ident)
            peer.claim()
            peer.append(renamed(whole, ident))
            peer.tell(None, {**summary, "id": ident})
            peer.release()
    seconds = time.perf_counter() - began
    print(
        f"{len(ids)} sessions of {ROWS} rows pushed in {seconds:.1f} s, {admin.total(address) / 1e6:.0f} MB", flush=True
    )


def main(address: str, count: int, seconds: float) -> None:
    os.environ["RLGPT_HOME"] = tempfile.mkdtemp(prefix="rlgpt-bench-")
    admin.init(address)
    session = template()
    whole = FolderPeer(session.path).since(0, set(), 10**6)
    ids = [f"260101-000000-{number:05d}" for number in range(count)]
    load(address, ids, session, whole)
    store = SharedStore(address)
    listed: list[float] = []
    for _ in range(50):
        assert len(timed(store.summaries, listed)) == count
    told(f"list of {count} sessions, at rest", listed)

    last = whole.rows["metric"][-1]
    one = whole._replace(
        first=whole.last - 1, rows={"metric": [last]}, columns={"metric": whole.columns["metric"]}, texts=[]
    )
    pushes: list[float] = []
    polls: list[float] = []
    lists: list[float] = []
    delays: list[float] = []
    pushed_at: dict[tuple[str, int], float] = {}
    faults: list[str] = []
    ending = threading.Event()
    keepers, consoles = min(KEEPERS, count), CONSOLES

    def keep(ident: str, offset: float) -> None:
        peer = SharedPeer(connect(address), address, ident)
        peer.claim()
        by = 1
        ending.wait(offset)
        while not ending.wait(PUSH):
            pushed_at[ident, whole.last + by] = time.perf_counter()
            timed(lambda by=by: peer.append(renamed(one, ident, by)), pushes)
            by += 1

    def look(ident: str, offset: float) -> None:
        store = SharedStore(address)
        peer = store.remote(ident)
        seq, listed_at = whole.last, 0.0
        ending.wait(offset)
        while not ending.wait(POLL):
            batch = timed(lambda seq=seq: peer.since(seq, set()), polls)
            delays.extend(time.perf_counter() - pushed_at[ident, n] for n in range(seq + 1, batch.last + 1))
            seq = batch.last
            if time.perf_counter() - listed_at > LIST:
                listed_at = time.perf_counter()
                timed(store.summaries, lists)

    def guarded(work: Callable[[str, float], None], ident: str, offset: float) -> None:
        try:
            work(ident, offset)
        except Exception as error:
            faults.append(f"{type(error).__name__}: {error}")

    crowd = [(keep, ids[n], n / keepers) for n in range(keepers)]
    crowd += [(look, ids[n % keepers], n / consoles) for n in range(consoles)]
    threads = [threading.Thread(target=guarded, args=words) for words in crowd]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    ending.set()
    for thread in threads:
        thread.join()
    print(
        f"{keepers} keepers push each second, {consoles} consoles poll: {seconds:.0f} s, "
        f"{len(faults)} errors {faults[:1]}"
    )
    told("push", pushes)
    told("poll", polls)
    told("list", lists)
    told("push begun -> read by a console", delays)


if __name__ == "__main__":
    main(sys.argv[1], int((sys.argv[2:3] or ["1000"])[0]), float((sys.argv[3:4] or ["60"])[0]))
