"""An experiment on the disk: `experiments/NAME/experiment.json`, the list of its sessions and which exist.

Written whole at every change and never re-decided: running it again goes on where it was left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rlgpt.store import atomic
from rlgpt.store.home import home
from rlgpt.training.experiments.declared import KINDS, Tree, Undeclared, trees

FILE = "experiment.json"
FORMAT = 1
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,60}\Z")


@dataclass(frozen=True)
class Planned:
    task: str
    arm: str
    seed: int
    settings: Tree
    id: str = ""
    """Of its session, empty before that was made."""

    @property
    def words(self) -> str:
        return f"{self.task}, {self.arm}, seed {self.seed}"


@dataclass
class Manifest:
    name: str
    kind: str
    about: str
    sessions: list[Planned]

    @property
    def path(self) -> Path:
        return home() / "experiments" / self.name / FILE

    def made(self, planned: Planned, session_id: str) -> Planned:
        """Note that a session was made; returns its new entry."""
        placed = replace(planned, id=session_id)
        self.sessions[self.sessions.index(planned)] = placed
        self.save()
        return placed

    def save(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        body = json.dumps({"format": FORMAT} | asdict(self), indent=1) + "\n"
        atomic.write_bytes(self.path, body.encode())


def declare(kind: str, name: str, base: Mapping[str, Any], tasks: Sequence[str], seeds: Sequence[int]) -> Manifest:
    """The experiment of this name: as it is on the disk, or new and not yet saved.

    Raises Undeclared when the one on the disk was declared otherwise.
    """
    sessions = [Planned(*one) for one in trees(kind, base, tasks, seeds)]
    name = name or "-".join([kind, *(tasks if len(tasks) == 1 else [])])
    if not _NAME.match(name):
        raise Undeclared(f"{name!r:.80} is no name for an experiment: letters, digits, - and _")
    declared = Manifest(name, kind, KINDS[kind].about, sessions)
    if not declared.path.is_file():
        return declared
    existing = load(declared.path)
    if (existing.kind, [_bare(p) for p in existing.sessions]) != (kind, [_bare(p) for p in sessions]):
        raise Undeclared(
            f"the experiment {name} was declared with other tasks, seeds or settings ({len(existing.sessions)} "
            "sessions): give the same ones to go on with it, or choose another --name"
        )
    return existing


def load(path: Path) -> Manifest:
    """Raises Undeclared."""
    try:
        tree = json.loads(path.read_text())
        if tree.pop("format") != FORMAT:
            raise Undeclared(f"{path} is of another version of rlgpt")
        sessions = [Planned(**one) for one in tree.pop("sessions")]
        return Manifest(sessions=sessions, **tree)
    except (OSError, ValueError, TypeError, KeyError) as error:
        if isinstance(error, Undeclared):
            raise
        raise Undeclared(f"{path} cannot be read: {error}") from error


def _bare(planned: Planned) -> Planned:
    return replace(planned, id="", settings=json.loads(json.dumps(planned.settings)))
