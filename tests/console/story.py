"""A session as rows: what a worker would have written, with everything a console must show.

Deterministic. Rows are (table, fields) with `seq`, `at`, `active` and `incarnation` filled, ready for the fold
or for the store's writer.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from story_facts import CONFIG, GOOD_TRIAL, ITEMS, TASK_INFO, frame_body

from rlgpt.store import commands, events
from rlgpt.store.films import Frame, packed
from tests.stories import Rows

STARTED = 1_760_000_000.0


@dataclass
class Story(Rows):
    """Appends rows with the clock and the sequence moving."""

    session_id: str = "s-demo"
    task: str = "make_stone_pickaxe"
    llm: str = "rules"
    review: bool = False
    started: float = STARTED
    texts: dict[str, str] = field(default_factory=dict)
    env_steps: int = 0
    random: random.Random = field(default_factory=lambda: random.Random(7))
    versions: dict[str, int] = field(default_factory=dict)
    calls: int = 0

    def add(self, table: str, wait: float = 0.5, /, **columns: Any) -> dict[str, Any]:
        return super().add(table, wait, **columns)

    def event(self, event: events.Event, wait: float = 0.1) -> dict[str, Any]:
        return super().event(event, wait)

    def text(self, body: str) -> str:
        from hashlib import blake2b

        name = blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        self.texts[name] = body
        return name

    # ---- parts of a session ----------------------------------------------------------------------
    def open(self) -> None:
        self.add(
            "session", 0.0, name=f"{self.task}-1", task=self.task, world="crafter", world_version="1.8.3",
            settings={
                "task": self.task,
                "world": "crafter",
                "seed": 1,
                "device": "auto",
                "review": self.review,
                "skills": "none",
                "critic": "model",
                "host_mode": "locked",
                "llm": {"kind": self.llm, "model": "gpt-5-mini"},
                "budget": {"env_steps": 1_000_000, "cost": 5.0, "tokens": 2_000_000, "hours": 8.0, "daily_cost": 20.0},
                "loop": {"iterations": 3, "inner": 3, "depth": 2, "target": 0.95},
            },
            versions={"device": "cpu", "device_reason": "a small symbolic policy is faster on the CPU"},
            task_info=TASK_INFO,
            parent_id=None, parent_seq=None
        )  # fmt: skip
        self.event(events.Started())
        self.log("info", "worker_started", pid=4242, device="cpu")

    def log(self, level: str, event: str, **fields: Any) -> None:
        self.add("log", 0.0, level=level, event=event, fields=fields)

    def phase(self, name: str, **more: Any) -> None:
        """A new step; the worker has written first what the one before led to."""
        self.decide()
        self.event(events.Phase(name=name, **more))

    def call(self, role: str, step: str, prompt: str, reply: str, seconds: float = 2.0, error: str = "") -> None:
        self.calls += 1
        tokens_in, tokens_out = len(prompt) // 4 + 400, len(reply) // 4 + 60
        rules = self.llm == "rules"
        common = {
            "call": f"c{self.calls}",
            "step": step,
            "role": role,
            "model": "rules" if rules else "gpt-5-mini",
            "request_hash": self.text(prompt),
            "try_number": 1,
            "reserved": None if rules else 0.02,
        }
        self.add(
            "llm_call", 0.1, state="sent", reply_hash=None, error="", tokens_in=0, tokens_out=0, cost=None,
            seconds=0.0, **common
        )  # fmt: skip
        self.add(
            "llm_call", seconds, state="failed" if error else "answered",
            reply_hash=None if error else self.text(reply), error=error, tokens_in=0 if error else tokens_in,
            tokens_out=0 if error else tokens_out,
            cost=None if error else (0.0 if rules else tokens_in * 0.25e-6 + tokens_out * 2e-6), seconds=seconds,
            **common
        )  # fmt: skip

    def plan(
        self,
        iteration: int,
        revision: int,
        author: str = "slow",
        modes: dict[str, str] | None = None,
        depth: int = 0,
        pinned: tuple[str, ...] = (),
        waiting: bool = False,
        drop: tuple[str, ...] = (),
    ) -> None:
        if author in ("slow", "refine"):
            self.phase("Plan", sub_task=0, iteration=iteration, failed=[], last_depth=False)
            self.call(
                "slow",
                f"{'refine' if author == 'refine' else 'plan'}/0.{iteration}/{revision - 1}",
                "World sheet: crafter …\nTask: make a stone pickaxe.",
                '{"executor": "policy", …}',
            )
        self.add(
            "plan", 0.0, sub_task=0, iteration=iteration, revision=revision, author=author, executor="policy",
            rationale="Wood, table and pickaxes are short searches: code. The fight at dusk is left to RL.",
            depth=depth, attempted={"collect_stone": {"mode": "rl"}} if pinned else {}
        )  # fmt: skip
        position = 0
        for name, mode, goal, reason, done_when, max_steps in ITEMS:
            if name in drop:
                continue
            changed = bool(modes and name in modes)
            self.add(
                "sub_action", 0.0, revision=revision, position=position, name=name,
                mode=modes[name] if modes and changed else mode, goal=goal, reason=reason, done_when=done_when,
                max_steps=max_steps, pinned=name in pinned, author=author if changed or author == "slow" else "slow"
            )  # fmt: skip
            position += 1
        self.event(events.PlanWaiting(revision) if waiting else events.PlanInForce(revision))

    def attempt(
        self,
        iteration: int,
        revision: int,
        name: str,
        source: str,
        successes: int,
        episodes: int = 5,
        *,
        attempt: int = 1,
        author: str = "fast",
        outcome: str = "",
        error: str = "",
        admitted: bool = True,
        rule: str = "",
        line: int = 0,
        message: str = "",
        verdict: str = "",
    ) -> None:
        version = self.versions[name] = self.versions.get(name, 0) + 1
        if author == "fast":
            self.phase("Code", item=name, attempt=attempt)
            self.call("fast", f"write/0.{iteration}/{name}/{version}", f"Write {name} …", source)
        done_when = next((i[4] for i in ITEMS if i[0] == name), "True")
        source_hash = self.text(source)
        self.add(
            "code_version", 0.2, sub_task=0, iteration=iteration, sub_action=name, version=version, attempt=attempt,
            author=author, source_hash=source_hash, note="uses the map memory" if version > 1 else "first version",
            admitted=admitted,
            admission={
                "name": name,
                "rule": rule,
                "line": line,
                "message": message,
                "arguments": {},
                "has_available": False,
                "ignore_alarm": False,
                "tree_hash": source_hash[:12],
            },
        )  # fmt: skip
        outcome = outcome or ("refused" if not admitted else "accepted" if successes >= 0.6 * episodes else "failed")
        self.phase("Trial", item=name, version=version)
        env_steps = 0 if outcome == "refused" else 37 * episodes + 11 * successes
        self.env_steps += env_steps
        bad = {
            "before": {"wood": 0, "health": 9},
            "after": {"wood": 0, "health": 6},
            "difference": {"health": "-3"},
            "yields": ["noop x 40"],
            "end": "error" if error else "cap",
            "message": error,
        }
        self.add(
            "trial", 1.5, sub_task=0, iteration=iteration, revision=revision, sub_action=name, version=version,
            source_hash=source_hash, done_when=done_when, outcome=outcome,
            episodes=0 if outcome == "unreached" else episodes, successes=successes, prefixes=episodes,
            env_steps=env_steps, error=error,
            trials=[
                {
                    "seed": s,
                    "arrived": True,
                    "start_true": False,
                    "end_true": s < successes,
                    "env_steps": 37,
                    "end": "return",
                    "message": "",
                }
                for s in range(episodes)
            ],
            evidence={"good": GOOD_TRIAL if successes else None, "bad": bad if successes < episodes else None}
        )  # fmt: skip
        self.film("trial", self.history.counts["trial"], 0, *(step * 7 for step in range(6)))
        if outcome == "failed":
            self.phase("JudgeItem", item=name, version=version)
            self.add(
                "verdict", 1.0, sub_task=0, iteration=iteration, revision=revision, sub_action=name, version=version,
                author="critic", success=False, confidence=0.8,
                cause=verdict or "It waits at the spot instead of walking to a tree.", advice_slow="",
                advice_fast="Remember trees that left the window and walk to the nearest.", measured=False, better=""
            )  # fmt: skip

    def film(self, source: str, owner: int, episode: int, *steps: int, **told: Any) -> None:
        """`told`: what each of its frames says of what was done."""
        frames = [
            Frame(step, "crafter-window-1", "collect_wood" if step % 2 else "move_right", frame_body(step), "do", "")
            for step in steps
        ]
        frames = [frame._replace(total=float(frame.step), **told) for frame in frames]
        last = frames[-1]
        self.add(
            "frame", 0.0, source=source, owner=owner, episode=episode, step=last.step, format=f"film:{last.format}",
            decision=last.decision, body=packed(frames), primitive=last.primitive, inner=last.inner,
            **{"return": last.total},
        )  # fmt: skip

    def configure(self, iteration: int, revision: int) -> None:
        self.phase("Configure", revision=revision)
        self.add(
            "rl_config", 0.5, sub_task=0, iteration=iteration, revision=revision, author="fast", config=CONFIG,
            config_hash=f"cfg{iteration}", note="options on top of primitives"
        )  # fmt: skip

    def train(
        self,
        iteration: int,
        revision: int,
        run: int,
        updates: int = 30,
        rollout: int = 2048,
        start: int = 0,
        level: float = 0.2,
        gain: float = 0.5,
        seconds: float = 1.5,
        end: str = "finished",
        opened: bool = True,
    ) -> None:
        if opened:
            self.phase("Train", revision=revision, run=None)
            self.add(
                "training_run", 0.1, sub_task=0, iteration=iteration, revision=revision, run=run,
                config_hash=f"cfg{iteration}", env_steps_planned=60 * rollout, warm_from=run - 1 if run > 1 else None,
                slots=[
                    {
                        "slot": 17 + i,
                        "name": n,
                        "source_hash": "0" * 32,
                        "arguments": {},
                        "prior": 0.17,
                        "similar": "",
                    }
                    for i, n in enumerate(("follow_plan", "collect_wood", "place_table"))
                ],
                device="cpu", explanation="a small symbolic policy is faster on the CPU"
            )  # fmt: skip
        for update in range(start + 1, start + updates + 1):
            self.metric(run, update, rollout, level + gain * (1 - math.exp(-update / 12)), seconds)
            if update % 10 == 0:
                self.add(
                    "checkpoint", 0.0, run=run, update=update, env_steps=update * rollout, kind="rollout",
                    artifact=f"{run:02d}{update:06d}" * 4, size=420_000
                )  # fmt: skip
        if end:
            last = start + updates
            self.event(
                events.TrainingEnded(
                    run=run,
                    state=end,
                    reason="the planned env steps are done" if end == "finished" else "plan revision changed",
                    env_steps=last * rollout,
                    decisions=last * rollout // 5,
                    updates=last,
                )
            )

    def metric(self, run: int, update: int, rollout: int, success: float, seconds: float = 1.5) -> None:
        jitter = self.random.uniform
        episodes = 9
        won = sum(self.random.random() < success for _ in range(episodes))
        progress = min(update / 60, 1.0)
        self.add(
            "metric", seconds, run=run, update=update, env_steps=update * rollout, decisions=update * rollout // 5,
            episodes=episodes, successes=won, return_mean=10 * won / episodes - 2 + jitter(-0.4, 0.4),
            length_mean=420 - 200 * progress + jitter(-20, 20), kl=abs(0.012 + jitter(-0.006, 0.01)),
            clip_fraction=abs(0.12 + jitter(-0.04, 0.04)), entropy=0.8 - 0.4 * progress + jitter(-0.02, 0.02),
            policy_loss=-0.02 + jitter(-0.01, 0.01), value_loss=0.6 * math.exp(-2 * progress) + jitter(0, 0.05),
            explained_variance=0.1 + 0.7 * progress + jitter(-0.05, 0.05), rate=1450 + jitter(-80, 80),
            learning_rate=3e-4, dead_loops=int(jitter(0, 2.4 - 2 * progress)),
            milestones={"collect_wood": episodes, "place_table": max(won, 5), "make_stone_pickaxe": won},
            option_usage={
                "primitive": int(220 - 120 * progress),
                "follow_plan": int(60 + 90 * progress),
                "collect_wood": 55,
                "place_table": 12,
            },
            end_reasons={
                "follow_plan": {"return": 41, "cap": 12, "alarm": 7},
                "collect_wood": {"return": 30, "cap": 20, "alarm": 4, "error": 1},
            },
            rewards={"task": 10.0 * won, "step": -0.01 * rollout}
        )  # fmt: skip

    def evaluate(
        self,
        iteration: int,
        revision: int,
        number: int,
        successes: int,
        episodes: int = 50,
        split: str = "dev",
        variant: str = "full",
        run: int | None = 1,
    ) -> None:
        from rlgpt.store.intervals import wilson

        self.phase("Evaluate", iteration=iteration, split=split, variant=variant, first=0, episodes=episodes)
        low, high = wilson(successes, episodes)
        self.add(
            "evaluation", 6.0, sub_task=0, iteration=iteration, revision=revision, number=number, split=split,
            variant=variant, first=0, episodes=episodes, successes=successes, ci_low=low, ci_high=high,
            return_mean=4.2, length_mean=260.0, dead_loops=3, env_steps=episodes * 260, run=run,
            policy="plan" if variant == "plan" or run is None else "ppo",
            funnel={
                "collect_wood": episodes - 1,
                "place_table": episodes - 4,
                "make_wood_pickaxe": episodes - 7,
                "collect_stone": successes + 2,
            },
            milestones={"make_stone_pickaxe": successes},
            option_usage={"primitive": 2000, "follow_plan": 900, "collect_wood": 400},
            end_reasons={"follow_plan": {"return": 500, "alarm": 90}}, rewards={"task": 10.0 * successes}, score=None,
            score_low=None, score_high=None
        )  # fmt: skip
        self.film(split, number, 0, *(step * 25 for step in range(8)))

    def episode(self, split: str, owner: int, index: int, reached: list[str] | None, **fields: Any) -> None:
        """An episode that died of a zombie, unless `fields` say otherwise."""
        usual = {
            "variant": "full", "seed": 1_000 + index, "success": False, "return": 1.5, "env_steps": 200 + index,
            "decisions": 40, "dead_loop": False, "end": "death", "cause": "zombie", "milestones": [], "actions": None,
            "last": "",
        }  # fmt: skip
        self.add("episode", 0.0, split=split, owner=owner, index=index, reached=reached, **(usual | fields))

    def judge(self, iteration: int, revision: int, success: bool, better: str, cause: str) -> None:
        self.phase("JudgeIteration", iteration=iteration)
        self.call("critic", f"judge_iteration/0.{iteration}/{revision}", "Funnel, option usage …", cause)
        self.add(
            "verdict", 0.5, sub_task=0, iteration=iteration, revision=revision, sub_action=None, version=None,
            author="critic", success=success, confidence=0.7, cause=cause,
            advice_slow="Split the way to stone from the fight.", advice_fast="Wall in before dusk.",
            measured=success, better=better
        )  # fmt: skip
        self.decide()

    def command(
        self,
        ident: str,
        command: commands.Command,
        revision: int | None,
        state: Literal["applied", "refused", "expired"] = "applied",
        reason: str = "",
    ) -> None:
        seen = events.Command(ident, command.kind, "ada@lab", revision, command.payload(), "seen")
        self.event(seen)
        self.event(replace(seen, state=state, reason=reason))
