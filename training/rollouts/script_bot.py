"""The control `script`: the world's own script book played by follow_plan, its most elaborate versions in order.

No model chose or wrote any of it, so it is the bar that a session's own code has to clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlgpt.training.host.api import source_hash
from rlgpt.training.worlds.protocol import Script, World


@dataclass(frozen=True)
class BotStep:
    name: str
    source: str
    done_when: str

    @property
    def source_hash(self) -> str:
        return source_hash(self.source)


def script_bot(world: World, task: str) -> tuple[BotStep, ...]:
    """Empty for a world without a script book, or for a task that no script gets to."""
    book = world.scripts(task)
    milestones: Sequence[str] = world.tasks[task].milestones
    if world.tasks[task].kind == "score":  # they need not lead to each other: in the order of the book
        milestones = [name for script in book for name in script.gives if name in milestones]
    return tuple(BotStep(script.name, script.sources[-1], script.done_when) for script in _chain(book, milestones))


def _chain(book: Sequence[Script], milestones: Sequence[str]) -> list[Script]:
    """The scripts that give the milestones, each behind those it needs."""
    by_name = {script.name: script for script in book}
    out: list[Script] = []

    def add(script: Script) -> None:
        for name in script.needs:
            if name in by_name and by_name[name] not in out:
                add(by_name[name])
        if script not in out:
            out.append(script)

    for milestone in milestones:
        for script in book:
            if milestone in script.gives:
                add(script)
                break
    return out
