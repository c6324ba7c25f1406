"""Whole sessions in which an operator offers the policy one more coded action.

    python -P benchmarks/operator_sessions.py [--seeds 0 1 2 3 4] [--env-steps 2020000] [--dev 300] [--test 500]

collect_diamond with the first version of each script (the world `make_first_try`) and no refinement. By the commands of
`rlgpt` the operator adds the guard `workshop` of `first_tries.py` to the first plan, puts its code in, and once its
trials have accepted it gives it a trigger that never holds: so the plan does not call it, and the policy may. PPO may
have begun by then, and begins anew after this change of the plan. The sessions stay in RLGPT_HOME, and are compared at
the end.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FIRST_TRIES = runpy.run_path(str(Path(__file__).with_name("first_tries.py")))
GUARD = "workshop"
NEVER = "view.health < 0"
RL: dict[str, Any] = {
    "reward": [
        {"term": "milestone", "argument": "make_iron_pickaxe", "weight": 1.0}, {"term": "task", "weight": 2.0}
    ],
    "primitives": [], "options": ["follow_plan", GUARD], "option_prior": 0.04, "plan_prior": 0.95, "prior_kl": 0.02,
    "option_cap": 8, "env_steps": 2_000_000, "hyperparameters": FIRST_TRIES["SETTINGS"],
}  # fmt: skip
ENDED = ("succeeded", "finished", "failed", "stopped")
PROGRAM = str(Path(sys.executable).with_name("rlgpt"))


def rlgpt(*words: str, settings: dict[str, str] | None = None) -> str:
    """What the command printed, nothing where it was refused: the session had gone on meanwhile, so look again."""
    done = subprocess.run([PROGRAM, *words], env=os.environ | (settings or {}), capture_output=True, text=True)
    if done.returncode not in (0, 4):
        sys.exit(done.stderr)
    return done.stdout


def start(seed: int, env_steps: int, dev: int, test: int) -> str:
    """The id of the new session."""
    settings = {
        "RLGPT_METHOD__RL": json.dumps(RL), "RLGPT_METHOD__WHOLE_BUDGET": "true", "RLGPT_METHOD__CONTROLS": '["plan"]',
        "RLGPT_LOOP__DEV_FIRST": str(dev), "RLGPT_LOOP__DEV_MORE": "0", "RLGPT_LOOP__TEST_EPISODES": str(test),
    }  # fmt: skip
    words = ["run", FIRST_TRIES["TASK"], "--world", "rlgpt.training.worlds.crafter.world:make_first_try"]
    words += ["--seed", str(seed), "--iterations", "0", "--env-steps", str(env_steps), "--skills", "none"]
    words += ["--llm", "rules", "--review", "--detach", "--name", f"operator-{seed}", "--json"]
    return str(json.loads(rlgpt(*words, settings=settings))["id"])


def step_in(session: str, folder: Path) -> None:
    """Play the operator until the session ends."""
    code = folder / f"{GUARD}.py"
    code.write_text(FIRST_TRIES["WORKSHOP"])
    edited = False
    while (told := json.loads(rlgpt("show", session, "--json")))["status"] not in ENDED:
        pending = told["pending_plan"]
        if (plan := pending or told["plan"]) is None:
            time.sleep(1)
            continue
        override = ("override", session, "--revision", str(plan["revision"]))
        guard = next((item for item in plan["sub_actions"] if item["name"] == GUARD), None)
        if guard is None:
            rlgpt(
                *override, "--add", "--sub-action", GUARD, "--mode", "code", "--position", "0", "--max-steps", "60",
                "--goal", "a table and a furnace where the agent stands", "--trigger", FIRST_TRIES["TRIGGER"],
                "--done-when", FIRST_TRIES["READY"],
            )  # fmt: skip
        elif guard["accepted_version"] and guard["trigger"] != NEVER:
            rlgpt(*override, "--sub-action", GUARD, "--trigger", NEVER)
        elif plan["executor"] != "policy":
            rlgpt(*override, "--executor", "policy")
        elif pending:
            rlgpt("approve", session, "--revision", str(plan["revision"]))
        elif not edited:
            edited = bool(rlgpt("edit", session, str(code), "--sub-action", GUARD))
        else:
            time.sleep(30 if guard["trigger"] == NEVER else 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--env-steps", type=int, default=2_020_000)
    parser.add_argument("--dev", type=int, default=300)
    parser.add_argument("--test", type=int, default=500)
    arguments = parser.parse_args()
    sessions = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in arguments.seeds:
            session = start(seed, arguments.env_steps, arguments.dev, arguments.test)
            print(f"seed {seed}: {session}", flush=True)
            step_in(session, Path(folder))
            sessions.append(session)
    print(rlgpt("compare", *sessions))


if __name__ == "__main__":
    main()
