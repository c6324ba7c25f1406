"""Runs an experiment: `python -P -m rlgpt.training.experiments`, a request (see `requests`) as JSON on standard input.

One JSON object a line comes out: started, progress, ended, and at last done. Exit code 0, 1 when sessions are left that
are not over, or 2 with {"error": sentence}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from rlgpt.store.errors import StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.lease import Lease, LeaseTaken
from rlgpt.store.placing import placed_on
from rlgpt.store.settings import Refused
from rlgpt.training.experiments.declared import Undeclared
from rlgpt.training.experiments.requests import Request, declared, failures_of
from rlgpt.training.experiments.running import Job, Launch, Runner, launched
from rlgpt.training.session.creation import CannotCreate, create
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.protocol import WorldFailed

RUNNER = "runner.lock"


def _run(request: Request) -> int:
    folder = declared(request).path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    jobs, on = max(1, int(request["jobs"])), str(request.get("on", ""))

    def make(settings: Mapping[str, Any]) -> str:
        return str(create({**settings, "limits": {"host_slots": jobs}}, elsewhere=bool(on))["id"])

    try:
        lease = Lease.acquire(folder, RUNNER)
    except LeaseTaken as taken:
        raise CannotCreate(f"experiment {folder.name} is being run by another process already; wait for it") from taken
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
    except (Undeclared, Refused, StoreError, CannotCreate, registry.UnknownWorld, WorldFailed) as error:
        _print({"error": str(error)})
        return 2
    except OSError as error:
        _print({"error": f"{error.filename}: {error.strerror}" if error.filename else str(error)})
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    os.umask(0o077)
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(main())
