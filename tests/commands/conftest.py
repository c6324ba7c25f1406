"""A store of its own for every test, and a finished session written through the real writer."""

from __future__ import annotations

import contextlib
import json
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlgpt.console import cli
from rlgpt.store import creation, events, tables
from rlgpt.store.folder import SessionFolder
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer

TASK_INFO = {"id": "collect_wood", "prompt": "Collect wood.", "horizon": 500, "milestones": ["collect_wood"]}


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def rlgpt(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run one command line in this process."""

    def run(*words: object) -> Answer:
        capsys.readouterr()
        code = cli.run([str(word) for word in words])
        printed = capsys.readouterr()
        return Answer(int(code), printed.out, printed.err)

    return run


@contextlib.contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """As `ulimit -f` has it: for what is written it is a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def make(name: str = "wood", **settings: Any) -> SessionFolder:
    chosen = Settings.model_validate({"task": "collect_wood", "name": name, "seed": 7, **settings})
    return creation.create(chosen, task_info=TASK_INFO, world_version="1", versions={"python": "3"})


@pytest.fixture
def running() -> Iterator[tuple[SessionFolder, Writer]]:
    """A session with a plan in force whose worker (this test) is alive."""
    from rlgpt.store.lease import Lease

    session = make()
    with Lease.acquire(session.path), Writer(session) as writer:
        write_plan(writer)
        yield session, writer


@pytest.fixture
def finished() -> SessionFolder:
    session = make()
    with Writer(session) as writer:
        write_plan(writer)
        write_iteration(writer)
        writer.event(events.Ended(status="finished", reason="all 1 iterations are done"))
    return session


def write_plan(writer: Writer, revision: int = 1) -> None:
    with writer.transaction() as tx:
        if revision == 1:
            tx.event(events.Started())
            tx.add(tables.Iteration(sub_task=0, number=0))
        tx.add(
            tables.Plan(
                sub_task=0,
                iteration=0,
                revision=revision,
                author="slow",
                executor="policy",
                rationale="[/red]\x1b]0;x\x07",
            )
        )
        for position, (name, mode) in enumerate((("find_tree", "code"), ("strike", "rl"))):
            tx.add(
                tables.SubAction(
                    revision=revision, position=position, name=name, mode=mode, goal=f"{name} goal",
                    reason=f"{name} reason", done_when="view.facing == 'tree'", max_steps=50, author="slow",
                )
            )  # fmt: skip
        tx.event(events.PlanInForce(revision))


def write_iteration(writer: Writer) -> None:
    source = writer.text("def find_tree(view):\n    yield 1\n")
    with writer.transaction() as tx:
        tx.add(
            tables.CodeVersion(
                sub_task=0, iteration=0, sub_action="find_tree", version=1, attempt=1, author="fast",
                source_hash=source, admitted=True, admission={"name": "find_tree"},
            )
        )  # fmt: skip
        tx.add(
            tables.Trial(
                sub_task=0, iteration=0, revision=1, sub_action="find_tree", version=1, source_hash=source,
                done_when="view.facing == 'tree'", outcome="accepted", episodes=5, successes=4,
                prefixes=5, env_steps=100,
            )
        )  # fmt: skip
        tx.add(
            tables.TrainingRun(
                sub_task=0, iteration=0, revision=1, run=1, config_hash="c", env_steps_planned=2000,
                slots=[{"slot": 0, "name": "find_tree", "source_hash": source, "arguments": {}, "prior": None}],
            )
        )  # fmt: skip
        tx.add(tables.Metric(run=1, update=1, env_steps=2048, decisions=1500, episodes=9, successes=3))
        tx.event(events.TrainingEnded(run=1, state="finished", reason="", env_steps=2048, decisions=1500, updates=1))
        for split, variant, episodes, successes in (
            ("dev", "full", 20, 19), ("dev", "full", 30, 29), ("test", "full", 100, 90),
            ("test", "options_off", 100, 10), ("test", "primitives_off", 100, 40),
        ):  # fmt: skip
            tx.add(
                tables.Evaluation(
                    sub_task=0, iteration=0, revision=1, number=1, split=split, variant=variant, first=0,
                    episodes=episodes, successes=successes, ci_low=0.0, ci_high=1.0, return_mean=1.0,
                    length_mean=50.0, dead_loops=2, env_steps=1000, run=1, policy="ppo",
                    funnel={"find_tree": 18},
                )
            )  # fmt: skip
        tx.add(
            tables.Verdict(
                sub_task=0, iteration=0, revision=1, sub_action=None, version=None, author="critic",
                success=True, confidence=0.9, cause="it works", measured=True, better="policy",
            )
        )  # fmt: skip
        tx.event(
            events.VersionChosen(
                revision=1, item="find_tree", version=1, accepted=True, why="accepted in 4 of 5 trials"
            )
        )
        tx.event(
            events.IterationResult(
                sub_task=0, iteration=0, variant="full", score=0.96, low=0.86, high=0.99,
                why="there is no code to compare the policy with",
            )
        )  # fmt: skip
        tx.event(events.Incumbent(sub_task=0, iteration=0, why="the only iteration so far"))
