"""World sheets that the rule-based model has never seen, and journals that remember."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlgpt.agents.journal import NOTHING, Answer, Call, Held


@dataclass(frozen=True)
class Task:
    id: str
    prompt: str
    milestones: tuple[str, ...]
    horizon: int = 100
    kind: str = "goal"
    sub_tasks: tuple[str, ...] = ()


def _script(name: str, needs: tuple[str, ...], versions: int = 2, hard: bool = False) -> dict[str, Any]:
    item = name.split("_", 1)[1]
    return {
        "name": name,
        "goal": f"Have one {item}.",
        "done_when": f'view.bag["{item}"] >= 1',
        "sources": [
            f"def {name}(view):\n    view = yield 'use'\n" + "    # a longer version\n" * n for n in range(versions)
        ],
        "needs": list(needs),
        "gives": [name],
        "hard": hard,
    }


def bakery(**renamed: str) -> dict[str, Any]:
    """Bread needs dough and an oven; dough needs flour. `renamed` gives items other names everywhere."""
    name = {n: renamed.get(n, n) for n in ("flour", "dough", "oven", "bread")}
    f, d, o, b = name["flour"], name["dough"], name["oven"], name["bread"]
    return {
        "items": [{"name": n, "doc": ""} for n in name.values()],
        "recipes": [
            {"name": f"make_{b}", "needs": {d: 1}, "near": [f"{o}"]},
            {"name": f"make_{d}", "needs": {f: 2}},
        ],
        "primitives": [{"name": "use", "doc": "Use it."}, {"name": "walk", "doc": "Walk."}],
        "view_doc": "bag: item -> number",
        "library_doc": "none",
        "dangers": ["The oven is hot."],
        "milestones": [f"get_{f}", f"make_{d}", f"build_{o}", f"make_{b}"],
        "scripts": [
            _script(f"make_{b}", ()), _script(f"build_{o}", (), hard=True), _script(f"make_{d}", ()),
            _script(f"get_{f}", (), versions=3),
        ],
        "limits": {"horizon": 100},
        "features": {"near": "what is near", "bag": "what is held"},
        "default_features": ["near", "bag"],
        "targets": [o, f],
    }  # fmt: skip


BREAD = Task("make_bread", "Bake a bread.", ("get_flour", "make_dough", "build_oven", "make_bread"))


@dataclass
class Ledger:
    """A journal in memory: one (state, call, answer or error) a row."""

    rows: list[tuple[str, Call, Any]] = field(default_factory=list)
    replies: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    waits: list[str] = field(default_factory=list)
    """Why it waited for the model, `back`, or why it gave up, in order."""
    charged: list[tuple[int, int, float | None]] = field(default_factory=list)
    """What each failed exchange was charged."""
    most_probes: int = 200
    probes: dict[tuple[str, str, int], tuple[str, str, int]] = field(default_factory=dict)

    def learnt(self) -> list[tuple[str, str, str, str]]:
        return [
            (call.role, call.step, row.fault if isinstance(row, Answer) else row, call.request)
            for state, call, row in self.rows
            if state in ("answered", "failed")
        ]

    def recorded(self, step: str, request_hash: str) -> tuple[str, str] | None:
        return self.replies.get((step, request_hash))

    def reserve(self, call: Call, held: Held = NOTHING) -> None:
        self.rows.append(("reserved", call, call.reserved))

    def sent(self, call: Call) -> None:
        self.rows.append(("sent", call, None))

    def answered(self, call: Call, answer: Answer) -> None:
        self.rows.append(("answered", call, answer))
        self.replies[call.step, call.request_hash] = (answer.reply, answer.fault)

    def failed(
        self, call: Call, error: str, seconds: float, charged: tuple[int, int, float | None] = (0, 0, 0.0)
    ) -> None:
        self.rows.append(("failed", call, error))
        self.charged.append(charged)

    def probes_left(self, step: str) -> int:
        return self.most_probes - sum(of_step != step for of_step, _, _ in self.probes)

    def probed(self, step: str, request_hash: str, number: int) -> str | None:
        found = self.probes.get((step, request_hash, number))
        return found[1] if found else None

    def add_probe(self, step: str, request_hash: str, number: int, tool: str, told: str, env_steps: int) -> None:
        self.probes[step, request_hash, number] = (tool, told, env_steps)

    def waiting(self, role: str, why: str) -> None:
        if not self.waits or self.waits[-1] == "back":
            self.waits.append(why)

    def back(self) -> None:
        if self.waits and self.waits[-1] != "back":
            self.waits.append("back")

    def given_up(self, role: str, why: str) -> None:
        self.waits.append(f"gave up: {why}")

    @property
    def ends(self) -> list[str]:
        """What became of each exchange: empty for a usable reply, else the fault or the error."""
        return [
            row.fault if isinstance(row, Answer) else row
            for state, _, row in self.rows
            if state in ("answered", "failed")
        ]
