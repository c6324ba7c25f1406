"""Runs an experiment: `python -P -m rlgpt.training.experiments`, a request (see `requests`) as JSON on standard input.

One JSON object a line comes out: started, progress, ended, and at last done; or {"error": sentence, "exit_code": code}.
Exit code 0, 1 when sessions are left that are not over, or that of the error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease, LeaseTaken
from rlgpt.store.limits import MOST_SLOTS
from rlgpt.store.placing import placed_on
from rlgpt.training.experiments.requests import Request, declared, failures_of
from rlgpt.training.experiments.running import Job, Launch, Runner, launched
from rlgpt.training.session.creation import REFUSED, CannotCreate, create
from rlgpt.training.session.refusals import refusal_of

RUNNER = "runner.lock"


def _run(request: Request) -> int:
    folder = declared(request).path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    jobs, on = max(1, int(request["jobs"])), str(request.get("on", ""))

    def make(settings: Mapping[str, Any], session_id: str) -> None:
        create({**settings, "limits": {"host_slots": min(jobs, MOST_SLOTS)}}, bool(on), session_id)

    try:
        lease = Lease.acquire(folder, RUNNER)
    except LeaseTaken as taken:
        sentence = f"experiment {folder.name} is being run by another process already; wait for it"
        raise CannotCreate(sentence, REFUSED) from taken
    with lease:
        manifest = declared(request)  # only now: who ran it before may just have made more of its sessions
        manifest.save()
        launch = _on_cluster(on) if on else launched
        signal.signal(signal.SIGTERM, _interrupt)  # again: Ray sets one of its own
        every = Runner(manifest, jobs, make, _print, launch).run()
    complete = all(k.status in ("succeeded", "finished") for k in every)
    ids, left = [k.planned.id for k in every], sum(not k.over for k in every)
    _print({"kind": "done", "complete": complete, "sessions": ids, "failed": failures_of(every), "left": left})
    return 0 if complete else 1


def _on_cluster(address: str) -> Launch:
    """Run on a cluster. When this process is stopped its sessions go on there; the same command follows them again."""
    from rlgpt.training.cluster.nodes import Nodes
    from rlgpt.training.cluster.placed import Placed

    nodes = Nodes(address)

    def launch(folder: SessionFolder) -> Job:
        if placed_on(folder.path) not in ("", address):  # its seat may live there
            return launched(folder)
        placed = Placed(folder, address, lambda: nodes)
        placed.start()
        return placed

    return launch


def _print(document: dict[str, Any]) -> None:
    """Raises KeyboardInterrupt when nobody listens any more: the console was killed."""
    try:
        print(json.dumps(document), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise KeyboardInterrupt from None


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    try:
        return _run(json.load(sys.stdin))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        _print({"error": refusal.sentence, "exit_code": refusal.exit_code})
        return refusal.exit_code


if __name__ == "__main__":
    os.umask(0o077)
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(main())
