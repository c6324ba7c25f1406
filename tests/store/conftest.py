"""Sessions to test with: an own home, and stories: random rows such as a worker could write them."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlgpt.store import event_payloads, events
from rlgpt.store import tables as t
from rlgpt.store.creation import create
from rlgpt.store.folder import SessionFolder
from rlgpt.store.settings import Settings
from rlgpt.store.writer import Writer

collect_ignore = (
    [] if importlib.util.find_spec("psycopg") else ["test_shared.py", "test_keeper.py", "test_partition.py"]
)
"""What needs the extra `rlgpt[postgres]`, which `rlgpt[dev]` installs."""
Story = list[list[t.Row]]
"""One list of rows a transaction."""
SLOT = {"slot": 0, "name": "wood", "source_hash": "f" * 32, "arguments": {}, "prior": None}
TRIED = {
    "seed": 1, "arrived": True, "start_true": False, "end_true": True, "env_steps": 9, "end": "return", "message": "",
}  # fmt: skip
BAD = {"before": {"wood": 0}, "after": {"wood": 0}, "difference": {}, "yields": ["noop"], "end": "time", "message": ""}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


NewSession = Callable[..., SessionFolder]


@pytest.fixture
def new_session(home: Path) -> NewSession:
    def make(**settings: object) -> SessionFolder:
        tree = Settings.model_validate({"task": "make_stone_pickaxe"} | settings)
        info = {"prompt": "make a stone pickaxe", "horizon": 500, "milestones": ["collect_wood"]}
        return create(tree, task_info=info, world_version="1.8.3", versions={"rlgpt": "0.1.0"})

    return make


@pytest.fixture
def session(new_session: NewSession) -> SessionFolder:
    return new_session()


@pytest.fixture
def writer(session: SessionFolder) -> Iterator[Writer]:
    with Writer(session) as opened:
        yield opened


@pytest.fixture
def tell() -> Callable[[random.Random, int], Story]:
    return story


@pytest.fixture
def finished(session: SessionFolder) -> SessionFolder:
    """A session of forty transactions, closed cleanly, with texts, an artifact and frames."""
    with Writer(session) as opened:
        write(opened, story(random.Random(7), 40))
        opened.artifact(b"weights")
        opened.text("a text that nobody refers to yet")
    return session


def write(writer: Writer, transactions: Story) -> None:
    for rows in transactions:
        with writer.transaction() as tx:
            for row in rows:
                tx.add(row)


class _Teller:
    """Rows in an order a worker could write them in: what a row refers to was written before it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.iteration = -1
        self.revision = 0
        self.items: list[str] = []
        self.versions: dict[str, int] = {}
        self.run = 0
        self.open_run = False
        self.update = 0
        self.env_steps = 0
        self.evaluations = 0
        self.calls = 0

    def next(self) -> list[t.Row]:
        choices = [self.phase, self.open_iteration, self.call, self.command, self.log, self.frames]
        if self.iteration >= 0:
            choices += [self.plan] * 2
        if self.revision:
            choices += [self.code] * 3 + [self.evaluation, self.verdict, self.start_run]
        if self.open_run:
            choices += [self.metric] * 8 + [self.end_run, self.resumed]
        return self.rng.choice(choices)()

    def event(self, event: events.Event) -> t.Row:
        return t.Event(kind=event_payloads.kind_of(event), payload=event_payloads.payload_of(event))

    def phase(self) -> list[t.Row]:
        name = self.rng.choice(["Plan", "Code", "Train"])
        return [
            self.event(events.Phase(name=name)),
            *([self.event(events.Waiting("approval"))] * (name == "Plan")),
        ]

    def open_iteration(self) -> list[t.Row]:
        self.iteration += 1
        return [t.Iteration(sub_task=0, number=self.iteration)]

    def plan(self) -> list[t.Row]:
        self.revision += 1
        self.items = self.rng.sample(["wood", "table", "pickaxe", "stone"], self.rng.randint(1, 4))
        kept = self.rng.random() < 0.8
        outcome = (events.PlanInForce if kept else events.PlanWaiting)(self.revision)
        return [
            t.Plan(
                sub_task=0, iteration=self.iteration, revision=self.revision, author="slow",
                executor=self.rng.choice(["sequence", "policy"]), attempted={"wood": {"mode": "rl"}},
            ),
            *(
                t.SubAction(
                    revision=self.revision, position=i, name=name, mode=self.rng.choice(["code", "rl"]),
                    goal=f"get {name}", reason="it is needed", done_when=f"view.has('{name}')", max_steps=50,
                    pinned=self.rng.random() < 0.3, author="slow",
                )
                for i, name in enumerate(self.items)
            ),
            self.event(outcome),
        ]  # fmt: skip

    def code(self) -> list[t.Row]:
        name = self.rng.choice(self.items)
        self.versions[name] = version = self.versions.get(name, 0) + 1
        good = self.rng.randint(0, 5)
        return [
            t.CodeVersion(
                sub_task=0, iteration=self.iteration, sub_action=name, version=version, attempt=1, author="fast",
                source_hash=f"{version:032x}", admitted=True, admission={"name": name, "arguments": {"n": (1, 2)}},
            ),
            t.Trial(
                sub_task=0, iteration=self.iteration, revision=self.revision, sub_action=name, version=version,
                source_hash=f"{version:032x}", done_when="x", outcome="accepted" if good > 2 else "failed", episodes=5,
                successes=good, prefixes=5, env_steps=self.rng.randint(5, 500), trials=[TRIED],
                evidence={"good": None, "bad": BAD},
            ),
        ]  # fmt: skip

    def start_run(self) -> list[t.Row]:
        self.run += 1
        self.open_run, self.update, self.env_steps = True, 0, 0
        return [
            t.RlConfig(sub_task=0, iteration=self.iteration, revision=self.revision, author="fast", config_hash="c"),
            t.TrainingRun(
                sub_task=0, iteration=self.iteration, revision=self.revision, run=self.run, config_hash="c",
                env_steps_planned=10_000, slots=[SLOT],
            ),
        ]  # fmt: skip

    def metric(self) -> list[t.Row]:
        self.update += 1
        self.env_steps += self.rng.randint(1, 2048)
        rows: list[t.Row] = [
            t.Metric(
                run=self.run, update=self.update, env_steps=self.env_steps, decisions=self.env_steps // 2, episodes=3,
                successes=self.rng.randint(0, 3), return_mean=self.rng.choice([None, self.rng.uniform(-1, 1)]),
                kl=float("nan") if self.rng.random() < 0.1 else 0.01, option_usage={"wood": self.update},
            )
        ]  # fmt: skip
        if self.rng.random() < 0.4:
            rows.append(
                t.Checkpoint(
                    run=self.run,
                    update=self.update,
                    env_steps=self.env_steps,
                    kind="rollout",
                    artifact="a",
                    size=1,
                )
            )
        return rows

    def resumed(self) -> list[t.Row]:
        self.update = self.update // 2
        self.env_steps = self.env_steps // 2
        return [
            self.event(
                events.Resumed(from_seq=1, run=self.run, update=self.update, env_steps=self.env_steps, cause="test")
            )
        ]

    def end_run(self) -> list[t.Row]:
        self.open_run = False
        decisions = self.env_steps // 2
        state = self.rng.choice(["finished", "superseded", "stopped"])
        numbers = {"env_steps": self.env_steps, "decisions": decisions, "updates": self.update}
        return [self.event(events.TrainingEnded(run=self.run, state=state, reason="", **numbers))]

    def evaluation(self) -> list[t.Row]:
        self.evaluations += 1
        good = self.rng.randint(0, 20)
        return [
            t.Evaluation(
                sub_task=0, iteration=self.iteration, revision=self.revision, number=self.evaluations,
                split=self.rng.choice(["dev", "test"]), variant="full", first=0, episodes=20, successes=good,
                ci_low=good / 30, ci_high=1.0, return_mean=0.5, length_mean=100.0, dead_loops=0, env_steps=2000,
                run=self.run or None, policy="ppo" if self.run else "plan", funnel={"wood": good},
            ),
            t.Episode(
                split="dev", owner=self.evaluations, variant="full", index=0, seed=1, success=True, return_=1.0,
                env_steps=9, decisions=3, dead_loop=False, end="success", milestones=["wood"], actions=b"\x00\x01",
            ),
        ]  # fmt: skip

    def verdict(self) -> list[t.Row]:
        name = self.rng.choice([None, *self.items])
        return [
            t.Verdict(
                sub_task=0, iteration=self.iteration, revision=self.revision, sub_action=name,
                version=self.versions.get(name) if name else None, author="critic", success=self.rng.random() < 0.5,
                confidence=0.5, cause="it \x1b[31mfell\x00", measured=self.rng.choice([None, True, False]),
            )
        ]  # fmt: skip

    def call(self) -> list[t.Row]:
        self.calls += 1
        cost = self.rng.choice([None, 0.01])
        common = {
            "call": f"c{self.calls}",
            "step": "Plan/0",
            "role": "slow",
            "model": "rules",
            "request_hash": "h",
        }
        return [
            t.LlmCall(**common, state="sent"),
            t.LlmCall(**common, state="answered", tokens_in=100, tokens_out=20, cost=cost),
        ]

    def command(self) -> list[t.Row]:
        kind, payload = self.rng.choice([("pause", {}), ("budget", {"name": "cost", "value": 3.5})])
        name = f"{self.rng.getrandbits(32):x}"
        fate = {"id": name, "kind": kind, "payload": payload, "author": "me", "revision": None, "reason": ""}
        done = self.event(events.Budget(**payload)) if payload else self.event(events.PauseRequested(author="me"))
        return [t.Event(kind="command", payload=fate | {"state": "seen"}),
                t.Event(kind="command", payload=fate | {"state": "applied"}), done]  # fmt: skip

    def log(self) -> list[t.Row]:
        return [t.Log(level="info", event="a [bold]line[/bold]", fields={"n": 1, "path": ("a", "b")})]

    def frames(self) -> list[t.Row]:
        return [
            t.Frame(source="trial", owner=1, episode=0, step=i, format="crafter", body=bytes([i] * 20))
            for i in range(3)
        ]


def story(rng: random.Random, transactions: int) -> Story:
    teller = _Teller(rng)
    opening: list[t.Row] = [t.Event(kind="started", payload={})]
    return [opening, *(teller.next() for _ in range(transactions))]
