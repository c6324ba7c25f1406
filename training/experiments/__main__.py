"""`python -P -m rlgpt.training.experiments bill|run|keep`, a request as JSON on standard input.

bill: one JSON object out. run: one object a line (started, progress, ended, and at last done). keep: the bundles
written. Exit code 0, 1 when `run` left sessions that are not over, or 2 with {"error": sentence}.

Request: {kind, name, tasks, seeds: [...], settings: tree, jobs, to}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from rlgpt.store.bundle import export_bundle
from rlgpt.store.errors import StoreError
from rlgpt.store.lease import Lease, LeaseTaken
from rlgpt.store.settings import Refused
from rlgpt.training.experiments.bill import bill, measured_rate
from rlgpt.training.experiments.declared import Undeclared
from rlgpt.training.experiments.manifest import FILE, Manifest, declare
from rlgpt.training.experiments.running import Runner, folder_of, known
from rlgpt.training.service import tool
from rlgpt.training.worlds import registry

Request = Mapping[str, Any]
RUNNER = "runner.lock"


def _declared(request: Request) -> Manifest:
    base = dict(request["settings"])
    manifest = declare(request["kind"], request["name"], base, request["tasks"], request["seeds"])
    world = registry.get(str(base.get("world", "crafter")))
    for task in dict.fromkeys(p.task for p in manifest.sessions):
        tool.task_info(world, task)
    return manifest


def _bill(request: Request) -> int:
    manifest = _declared(request)
    every = [known(planned) for planned in manifest.sessions]
    left = [(k.planned, k.settings, k.env_steps) for k in every if not k.over]
    first = manifest.sessions[0]
    world = str(first.settings.get("world", "crafter"))
    told: dict[str, Any] = {"name": manifest.name, "about": manifest.about, "declared": len(every)}
    told["tasks"] = list(dict.fromkeys(p.task for p in manifest.sessions))
    told["arms"] = list(dict.fromkeys(p.arm for p in manifest.sessions))
    told["seeds"] = list(dict.fromkeys(p.seed for p in manifest.sessions))
    told["llm"] = every[0].settings.llm.kind
    if left:
        told |= bill(left, request["jobs"], measured_rate(world, first.task))
    else:
        told["sessions"] = 0
    _print(told)
    return 0


def _run(request: Request) -> int:
    manifest = _declared(request)
    manifest.save()
    jobs = max(1, int(request["jobs"]))

    def make(settings: Mapping[str, Any]) -> str:
        return str(tool.make({**settings, "limits": {"host_slots": jobs}})["id"])

    try:
        lease = Lease.acquire(manifest.path.parent, RUNNER)
    except LeaseTaken as taken:
        raise tool.Sentence(
            f"experiment {manifest.name} is being run by another process already; wait for it"
        ) from taken
    with lease:
        complete = Runner(manifest, jobs, make, _print).run()
    _print({"kind": "done", "complete": complete, "sessions": [p.id for p in manifest.sessions]})
    return 0 if complete else 1


def _keep(request: Request) -> int:
    """Bundles for a claim: TASK-ARM-SEED.rlgpt beside the declaration; those that are there already are replaced."""
    manifest = _declared(request)
    target = Path(request["to"])
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for planned in manifest.sessions:
        if planned.id and known(planned).over:
            name = f"{planned.task}-{planned.arm}-{planned.seed}.rlgpt".replace(" ", "_")
            written.append(str(export_bundle(folder_of(planned), target / name, evidence=True)))
    (target / FILE).write_text(manifest.path.read_text())
    _print({"written": written, "missing": len(manifest.sessions) - len(written)})
    return 0


def _print(told: dict[str, Any]) -> None:
    """Raises KeyboardInterrupt when nobody listens any more: the console was killed."""
    try:
        print(json.dumps(told), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise KeyboardInterrupt from None


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(words: list[str]) -> int:
    act = {"bill": _bill, "run": _run, "keep": _keep}[words[0]]
    try:
        return act(json.load(sys.stdin))
    except (Undeclared, Refused, StoreError, tool.Sentence, registry.UnknownWorld, OSError) as error:
        _print({"error": str(error.args[0]) if error.args else str(error)})
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    os.umask(0o077)
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(main(sys.argv[1:]))
