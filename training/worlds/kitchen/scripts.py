"""The script book, none yet: every sub-action is left to RL."""

from __future__ import annotations

from rlgpt.training.worlds.protocol import Script, Task


def scripts_for(task: Task) -> tuple[Script, ...]:
    return ()
