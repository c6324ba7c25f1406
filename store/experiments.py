"""An experiment on the disk: `experiments/NAME/experiment.json`, the list of its sessions and which exist.

Written whole at every change and never re-decided: running it again goes on where it was left.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rlgpt.store import atomic
from rlgpt.store.errors import StoreError
from rlgpt.store.home import home
from rlgpt.store.row_types import JsonObject

FILE = "experiment.json"
FORMAT = 1
_ID = re.compile(r"[a-z0-9-]*\Z")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,60}\Z")


class NoExperiment(StoreError):
    """There is none of that name, or its file cannot be read."""


@dataclass(frozen=True)
class Planned:
    task: str
    arm: str
    seed: int
    settings: JsonObject
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
        return path_of(self.name)

    def made(self, planned: Planned, session_id: str) -> Planned:
        """Note that a session is made under this id, or none after all; returns its new entry."""
        placed = replace(planned, id=session_id)
        self.sessions[self.sessions.index(planned)] = placed
        self.save()
        return placed

    def save(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.write(self.path)

    def write(self, path: Path) -> None:
        body = json.dumps({"format": FORMAT} | asdict(self), indent=1) + "\n"
        atomic.write_bytes(path, body.encode())


def path_of(name: str) -> Path:
    """Of its file, there or not. Raises NoExperiment for what cannot be a name."""
    if not _NAME.match(name):
        words = "at most 61 small letters, digits, -, _ and dots, the first a letter or digit"
        raise NoExperiment(f"{name!r:.80} is no name for an experiment: {words}")
    return home() / "experiments" / name / FILE


def names() -> list[str]:
    return sorted(path.parent.name for path in (home() / "experiments").glob(f"*/{FILE}"))


def load(path: Path) -> Manifest:
    """Raises NoExperiment, also for what a person has edited into the file."""
    try:
        tree = TypeAdapter(JsonObject).validate_json(path.read_bytes())
        if tree.get("format", FORMAT) != FORMAT:
            raise NoExperiment(f"{path} is of another version of rlgpt")
        manifest = TypeAdapter(Manifest).validate_python(tree)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise NoExperiment(f"{path} cannot be read: {place}{': ' if place else ''}{first['msg']}") from error
    except OSError as error:
        raise NoExperiment(f"{path} cannot be read: {error.strerror}") from error
    if bad := [planned.id for planned in manifest.sessions if not _ID.match(planned.id)]:
        raise NoExperiment(f"{path} cannot be read: {bad[0]!r:.80} is no id of a session")
    ids = [planned.id for planned in manifest.sessions if planned.id]
    if twice := next((each for each in ids if ids.count(each) > 1), ""):
        raise NoExperiment(f"{path} cannot be read: session {twice} is in it twice")
    return manifest
