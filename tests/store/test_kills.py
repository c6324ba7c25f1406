"""A writing process may be killed at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from rlgpt.store import events, lease
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import fold_all
from rlgpt.store.reader import Reader
from rlgpt.store.upkeep import check
from rlgpt.store.writer import Writer

WRITING = """
import sys
from pathlib import Path
from rlgpt.store import events, tables as t
from rlgpt.store.writer import Writer
writer = Writer(Path(sys.argv[1]))
with writer.transaction() as tx:
    tx.event(events.Started())
    tx.add(t.Iteration(sub_task=0, number=0))
    tx.add(t.TrainingRun(sub_task=0, iteration=0, revision=1, run=1, config_hash="", env_steps_planned=1))
print(writer.history.seq, flush=True)
number = 0
while True:
    number += 1
    name = writer.artifact(str(number).encode() * 5000)
    with writer.transaction(durable=number % 7 == 0) as tx:
        tx.add(t.Metric(run=1, update=number, env_steps=number * 10, decisions=number, episodes=1, successes=1))
        tx.add(t.Checkpoint(run=1, update=number, env_steps=number * 10, kind="boundary", artifact=name, size=5000))
        tx.event(events.SkillKept("x", writer.text(str(number) * 2000)))
    print(writer.history.seq, flush=True)
"""


@pytest.mark.parametrize("after", [0.0, 0.043, 0.15])
def test_a_killed_writer_leaves_a_store_that_folds_to_all_it_had_committed(
    session: SessionFolder, after: float
) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITING, session.path], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline())]
        time.sleep(after)
        child.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in child.stdout]
    assert not lease.Lease.held(session.path, lease.WRITER)
    with Reader(session) as reader:
        rows = reader.changes_since(0, None)
        assert [row["seq"] for _, row in rows] == list(range(1, len(rows) + 1))
        assert len(rows) >= acknowledged[-1]
        assert len(rows) % 3 == 1, "whole transactions only"
        for table, row in rows:
            if table == "checkpoint":
                assert reader.artifact(row["artifact"])
            if table == "event" and row["kind"] == "skill_kept":
                assert reader.text(row["payload"]["hash"])
    assert check(session) == []
    with Writer(session) as writer:
        assert writer.history == fold_all(rows)
        assert writer.event(events.Resumed(from_seq=writer.history.seq, cause="killed")) == len(rows) + 1


def test_a_killed_owner_frees_its_lease_at_once_even_while_its_children_live(session: SessionFolder) -> None:
    code = """
import os, subprocess, sys, time
from pathlib import Path
from rlgpt.store.lease import Lease
lease = Lease.acquire(Path(sys.argv[1]))
forked = os.fork()
if forked == 0:
    time.sleep(600)
    os._exit(0)
started = subprocess.Popen(["sleep", "600"])
print(forked, started.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code, session.path], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        children = [int(pid) for pid in owner.stdout.readline().split()]
        try:
            found = lease.owner(session.path)
            assert found is not None and found.pid == owner.pid
            with pytest.raises(lease.LeaseTaken, match=f"process {owner.pid}"):
                lease.Lease.acquire(session.path, patience=0)
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            for _ in range(100):  # a child that was forked an instant ago may not have let go yet
                if not lease.Lease.held(session.path):
                    break
                time.sleep(0.1)
            assert not lease.Lease.held(session.path)
            lease.Lease.acquire(session.path, patience=0).release()
        finally:
            for pid in children:
                os.kill(pid, signal.SIGKILL)
