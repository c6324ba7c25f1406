"""How fast the store is: `python -P benchmarks/store.py [updates] [events] [sessions]`; prints one line a measurement.

The session is the console's largest: 25,000 updates of about 40 numbers and 10,000 events. Then one machine with
1,000 sessions of about 650 rows each. What the console does with the rows is measured by benchmarks/console.py.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rlgpt.store import catalog, events
from rlgpt.store import tables as t
from rlgpt.store.catalog import find
from rlgpt.store.creation import create
from rlgpt.store.folder import SessionFolder, prepare
from rlgpt.store.reader import HEAVY, Reader
from rlgpt.store.row_types import MetricRow
from rlgpt.store.settings import Settings
from rlgpt.store.snapshot import unguarded
from rlgpt.store.spending import spent_today
from rlgpt.store.writer import Writer

OPTIONS = [f"option_{n}" for n in range(12)]
RUNS = 4


def metric(rng: random.Random, run: int, update: int) -> t.Metric:
    return t.Metric(
        run=run, update=update, env_steps=update * 2048, decisions=update * 700, episodes=9,
        successes=rng.randint(0, 9),
        return_mean=rng.gauss(0, 1), length_mean=rng.uniform(50, 500), kl=0.01, clip_fraction=0.1, entropy=0.5,
        policy_loss=0.1, value_loss=0.2, explained_variance=0.3, rate=3000.0, learning_rate=3e-4, dead_loops=1,
        milestones={f"milestone_{n}": n for n in range(6)}, option_usage={name: rng.randint(0, 99) for name in OPTIONS},
        end_reasons={name: {"return": 3, "cap": 1} for name in OPTIONS[:4]}, rewards={"task": 1.0, "step": -0.5},
    )  # fmt: skip


def fill(folder: SessionFolder, updates: int, event_count: int) -> None:
    rng = random.Random(0)
    with Writer(folder) as writer:
        writer.event(events.Started())
        writer.add(t.Iteration(sub_task=0, number=0))
        each = updates // RUNS
        for run in range(1, RUNS + 1):
            writer.add(t.TrainingRun(sub_task=0, iteration=0, revision=1, run=run, config_hash="", env_steps_planned=1))
            for start in range(1, each + 1, 500):
                with writer.transaction() as tx:
                    for update in range(start, min(start + 500, each + 1)):
                        tx.add(metric(rng, run, update))
                        if update % max(1, updates // event_count) == 0:
                            tx.event(events.Phase(name="Train", revision=1))


def timed(call: Callable[[], object], times: int = 1) -> float:
    """Median seconds."""
    spans = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spans.append(time.perf_counter() - start)
    return statistics.median(spans)


def main(updates: int = 25_000, events: int = 10_000, sessions: int = 1000) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ["RLGPT_HOME"] = home
        made = {"task_info": {}, "world_version": "1", "versions": {}}
        folder = create(Settings(task="make_stone_pickaxe"), **made)
        span = timed(lambda: fill(folder, updates, events))
        print(f"write, 500 rows a transaction    {(updates + events) / span:10,.0f} rows/s")
        single(create(Settings(task="collect_iron"), **made))
        read(folder)
        print(f"database                         {folder.database.stat().st_size / 1e6:10.1f} MB")
        print(f"writer opens (folds everything)  {timed(lambda: Writer(folder).close()) * 1e3:10.1f} ms")
    with tempfile.TemporaryDirectory() as home:
        os.environ["RLGPT_HOME"] = home
        many(sessions)


def many(sessions: int) -> None:
    """Looks over all sessions of a machine: a new one, one by its name, what today cost, the list."""
    settings = Settings(task="make_stone_pickaxe")
    made = {"task_info": {}, "world_version": "1", "versions": {}}
    first = create(settings, name="session-0", **made)
    fill(first, 400, 200)
    with Writer(first) as writer:
        call = {"call": "c", "step": "s", "role": "slow", "model": "m", "request_hash": "", "cost": 0.01}
        for _ in range(20):
            writer.add(t.LlmCall(**call, state="sent"))
            writer.add(t.LlmCall(**call, state="answered"))
    for number in range(1, sessions):
        copied(first, f"session-{number}")
    print(f"sessions on one machine          {sessions:10,}")
    middle = f"session-{sessions // 2}"
    for again in ("first", "again"):
        print(f"find by name, {again}              {timed(lambda: find(middle)) * 1e3:10.1f} ms")
    print(f"find by id                       {timed(lambda: find(first.id), 3) * 1e3:10.1f} ms")
    print(f"a new session                    {timed(lambda: create(settings, **made), 3) * 1e3:10.1f} ms")
    print(f"what today cost                  {timed(spent_today, 5) * 1e3:10.1f} ms")
    for again in ("first", "again"):
        print(f"list of all sessions, {again}      {timed(catalog.summaries) * 1e3:10.1f} ms")


def copied(first: SessionFolder, name: str) -> None:
    """Another session with the same rows."""
    new = prepare()
    shutil.copyfile(first.database, new.staging / "session.db")
    with contextlib.closing(sqlite3.connect(new.staging / "session.db", isolation_level=None)) as base:
        base.execute("PRAGMA synchronous=OFF")
        base.execute("BEGIN")
        with unguarded(base, ("session",)):
            base.execute("UPDATE session SET session_id = ?, name = ?", (new.id, name))
        base.execute("COMMIT")
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    new.publish()


def single(folder: SessionFolder) -> None:
    rng = random.Random(0)
    with Writer(folder) as writer:
        writer.add(t.TrainingRun(sub_task=0, iteration=0, revision=1, run=1, config_hash="", env_steps_planned=1))
        rows = [metric(rng, 1, n) for n in range(1, 1001)]
        span = timed(lambda: [writer.add(row) for row in rows])
        print(f"write, a metric a transaction    {span * 1e3:10.3f} ms each")
        share = span / 1000 / (2048 / 3000)
        print(f"  of training at 3,000 steps/s   {share:10.3%} (a row every 2,048 env steps)")
        span = timed(lambda: [writer.event(events.Phase(name="x")) for _ in range(50)])
        print(f"write, a durable event           {span / 50 * 1e3:10.3f} ms each")


def read(folder: SessionFolder) -> None:
    def opened() -> None:
        with Reader(folder) as reader:
            rows = sum(1 for _ in reader.rows(MetricRow))
        assert rows, "no metric row was written"

    print(f"open + all metric rows           {timed(opened, 5) * 1e3:10.1f} ms")
    with Reader(folder) as reader:
        print(f"first fold of the whole session  {timed(reader.history_at) * 1e3:10.1f} ms")
        last = reader.last_seq()
        rng = random.Random(1)
        seeks = sorted(timed(lambda: reader.history_at(rng.randint(1, last))) for _ in range(100))
        print(f"seek, fold only: p50, p95        {seeks[50] * 1e3:10.1f} ms {seeks[95] * 1e3:8.1f} ms")
        print(f"data_version                     {timed(reader.data_version, 1000) * 1e6:10.1f} us")
        idle = timed(lambda: reader.changes_since(last, without=HEAVY), 100)
        print(f"changes_since, nothing new       {idle * 1e6:10.1f} us")


if __name__ == "__main__":
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent]
    main(*map(int, sys.argv[1:]))
