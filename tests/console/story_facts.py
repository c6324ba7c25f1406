"""What a `Story` tells of its session, of trials and of frames, whatever happens in it."""

from __future__ import annotations

from typing import Any

ITEMS = (
    ("collect_wood", "code", "collect 4 wood", "the map memory makes finding trees a search",
     "view.inventory['wood'] >= 4", 200),
    ("place_table", "code", "place a table", "one primitive once wood is there",
     "'place_table' in view.achievements", 40),
    ("make_wood_pickaxe", "code", "make a wooden pickaxe at the table", "one primitive beside the table",
     "view.inventory['wood_pickaxe'] >= 1", 30),
    ("collect_stone", "code", "collect one stone", "tunnelling is a short search",
     "view.inventory['stone'] >= 1", 200),
    ("survive_zombies", "rl", "stay alive near grass at dusk", "timing of strikes is hard to script",
     "view.health >= 5", 300),
)  # fmt: skip
PRIMITIVES = [
    "noop", "move_left", "move_right", "move_up", "move_down", "do", "sleep",
    "place_stone", "place_table", "place_furnace", "place_plant", "make_wood_pickaxe", "make_stone_pickaxe",
]  # fmt: skip

TASK_INFO: dict[str, Any] = {
    "prompt": "Make a stone pickaxe.",
    "horizon": 500,
    "kind": "goal",
    "long_horizon": False,
    "milestones": [
        "collect_wood",
        "place_table",
        "make_wood_pickaxe",
        "collect_stone",
        "make_stone_pickaxe",
    ],
    "primitives": PRIMITIVES,
    "targets": ["tree", "stone"],
    "frame_format": "crafter-window-1",
    "sub_tasks": [],
}

GOOD_TRIAL: dict[str, Any] = {
    "before": {"wood": 0, "health": 9},
    "after": {"wood": 4, "health": 9},
    "difference": {"wood": "+4"},
    "yields": ["move_right x 7", "do x 4"],
    "end": "return",
    "message": "",
}

CONFIG: dict[str, Any] = {
    "target": "make_stone_pickaxe",
    "observation": ["window", "inventory", "vitals"],
    "reward": [
        {"term": "task", "argument": "", "weight": 10.0},
        {"term": "step", "argument": "", "weight": -0.01},
    ],
    "primitives": ["move_left", "move_right", "do"],
    "options": ["follow_plan", "collect_wood", "place_table"],
    "option_prior": 0.5,
    "option_cap": 16,
    "horizon": 500,
    "env_steps": 60_000,
    "hyperparameters": {"learning_rate": 3e-4, "gamma": 0.99, "n_envs": 8},
}


def frame_body(step: int) -> bytes:
    """A window of the crafter format (see its `drawing.py`) in which the agent walks past a pond."""
    from rlgpt.training.worlds.crafter import drawing as crafter

    ground = bytearray()
    for row in range(crafter.HEIGHT):
        for column in range(crafter.WIDTH):
            x = column + step
            code = (
                1
                if (x - 9) ** 2 + (row - 1) ** 2 < 5
                else 6
                if (x * 7 + row * 13) % 11 == 0
                else 3
                if x % 23 > 17
                else 2
            )
            code = 8 if code == 3 and (x + row) % 5 == 0 else code
            ground.append(code)
    ground[12], ground[40], ground[50] = 13, (14 if step > 60 else 2), (15 if step > 120 else 2)
    items = bytes([max(1, 9 - step // 30), 7, 6, 8, 1, min(9, step // 10), 2, 0, 0, 0, int(step > 40), 0, 0, 0, 0, 0])
    unlocked = (1 << 6 | (1 << 20 if step > 30 else 0)).to_bytes(3, "little")
    head = bytes([1, 32 + step % 20, 30, step % 4, 0, max(40, 255 - step)]) + step.to_bytes(2, "little")
    return head + items + unlocked + bytes(ground) + (500 - step).to_bytes(2, "little")
