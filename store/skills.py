"""The skill library: coded actions that were accepted by measurement, one JSON file each, by the hash of it.

    skills/<hash>.json      skills/retired/<hash>.json      skills/snapshots/<hash>.json

A snapshot is what a session may use, fixed at its creation: its bytes are stored in the session's artifacts,
its name is their hash. Source from the library is untrusted like any other: the action host admits it again.
Standard library only.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgpt.store import atomic
from rlgpt.store.artifacts import digest
from rlgpt.store.errors import BadPlace, BadSkill, NoSkill
from rlgpt.store.home import home
from rlgpt.store.plain import LATEST, is_plain

FORMAT = "rlgpt-skills-1"
LONGEST_SOURCE = 20_000
MOST_EPISODES = 10**9
LONGEST_EXPORT = 64_000_000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
_HASH = re.compile(r"[0-9a-f]{32}\Z")


@dataclass(frozen=True)
class Skill:
    name: str
    world: str
    task: str
    """Of the session that kept it."""
    description: str
    """The sub-action's goal."""
    source: str
    done_when: str
    episodes: int
    """Trials it was accepted by, and how many of them succeeded."""
    successes: int
    session_id: str
    kept_at: float
    """UTC seconds."""

    @property
    def source_hash(self) -> str:
        return digest(self.source.encode())

    @property
    def hash(self) -> str:
        """Of what it does, not of who measured it: the same code for the same purpose is one skill."""
        return digest(_canonical([self.world, self.name, self.source, self.done_when]))

    def told(self) -> dict[str, object]:
        """What agents are told of it."""
        return {
            "name": self.name,
            "goal": self.description,
            "done_when": self.done_when,
            "measured": f"{self.successes}/{self.episodes}",
            "source": self.source,
        }


def keep(skill: Skill) -> str:
    """Add a skill; one that is there stays unless the new one was measured longer, a retired one stays retired.
    Returns its hash."""
    _check(dataclasses.asdict(skill))
    path = _retired(skill.hash) if _retired(skill.hash).exists() else _path(skill.hash)
    stored = _load(path) if path.exists() else None
    if stored is None or skill.episodes > stored.episodes:
        _write(path, _canonical(dataclasses.asdict(skill)))
    return skill.hash


def skills(world: str | None = None, *, retired: bool = False) -> list[Skill]:
    """All in use (or all retired), by name, then best measured first."""
    folder = _folder() / "retired" if retired else _folder()
    loaded = [_load(path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []
    chosen = [s for s in loaded if world in (None, s.world)]
    return sorted(chosen, key=lambda s: (s.name, -s.successes / max(1, s.episodes), s.hash))


def search(words: str, world: str | None = None, *, retired: bool = False) -> list[Skill]:
    """Skills in use, or the retired ones, in whose name, description, task or source every word occurs; hits in the
    name first."""
    needles = words.lower().split()
    hits = [s for s in skills(world, retired=retired) if all(w in _haystack(s) for w in needles)]
    return sorted(hits, key=lambda s: not all(w in s.name for w in needles))


def find(skill: str) -> Skill:
    """By a prefix of its hash, or by name. Raises NoSkill."""
    every = [*skills(), *skills(retired=True)]
    matching = [s for s in every if len(skill) >= 4 and s.hash.startswith(skill)]
    matching = matching or [s for s in every if s.name == skill]
    if len(matching) == 1:
        return matching[0]
    if matching:
        choices = ", ".join(f"{s.name} {s.hash[:8]} ({s.world})" for s in matching[:5])
        raise NoSkill(f"{skill!r:.60} may mean {len(matching)} skills: {choices}")
    raise NoSkill(f"there is no skill {skill!r:.60}; `rlgpt skills list` lists them")


def retire(name: str) -> None:
    """Take a skill out of use (by hash); sessions that have it in their snapshot keep it. Raises BadSkill."""
    _move(_path(name), _retired(name), name)


def restore(name: str) -> None:
    _move(_retired(name), _path(name), name)


def export(chosen: Iterable[Skill]) -> bytes:
    """JSON that `import_` reads."""
    return _canonical({"format": FORMAT, "skills": [dataclasses.asdict(s) for s in chosen]})


def import_(body: bytes) -> list[Skill]:
    """Keep all skills of an exported file, or none of them; retired ones come back. Raises BadSkill, BadPlace."""
    parsed = read(body)
    try:
        for skill in parsed:
            if _retired(keep(skill)).exists():
                restore(skill.hash)
    except OSError as error:
        raise BadPlace(f"{home()} cannot keep skills: {error.strerror or error}") from error
    return parsed


def import_file(path: Path) -> list[Skill]:
    """`import_` of a file, of which no more is read than it may have. Raises BadSkill, BadPlace where they
    cannot be kept, OSError where the file cannot be read."""
    with path.open("rb") as file:
        body = file.read(LONGEST_EXPORT + 1)
    return import_(body)


def read(body: bytes) -> list[Skill]:
    """The skills in an exported file or a snapshot. Raises BadSkill."""
    if len(body) > LONGEST_EXPORT:
        raise BadSkill(f"a file of skills has at most {LONGEST_EXPORT // 1_000_000} MB, this one is larger")
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadSkill("this is no file of skills (it is not JSON)") from error
    if not isinstance(tree, dict) or tree.get("format") != FORMAT or not isinstance(tree.get("skills"), list):
        raise BadSkill(f"this is no file of skills (its format is not {FORMAT})")
    return [_check(item) for item in tree["skills"]]


# ---- snapshots ------------------------------------------------------------------------------------
def snapshot(choice: str, world: str) -> bytes:
    """What `--skills none|all|HASH` means now for a session in `world`: the bytes to put in its artifacts.

    Raises BadSkill for a hash that no snapshot here has.
    """
    chosen = {"none": list[Skill], "all": lambda: skills(world)}.get(choice)
    body = export(chosen()) if chosen else _snapshot(choice)
    path = _folder() / "snapshots" / f"{digest(body)}.json"
    if not path.exists():
        _write(path, body)
    return body


def _snapshot(snapshot_hash: str) -> bytes:
    matching = sorted((_folder() / "snapshots").glob("*.json"))
    matching = [path for path in matching if path.stem.startswith(snapshot_hash)]
    if len(matching) != 1:
        several = f"{len(matching)} snapshots of skills start" if matching else "no snapshot of skills starts"
        raise BadSkill(f"{several} with {snapshot_hash}")
    body = matching[0].read_bytes()
    if digest(body) != matching[0].stem:
        raise BadSkill(f"the snapshot {matching[0].stem} is damaged: its content is not what its name says")
    return body


# ---- files ----------------------------------------------------------------------------------------
def _folder() -> Path:
    return home() / "skills"


def _path(name: str) -> Path:
    return _folder() / f"{_hash(name)}.json"


def _retired(name: str) -> Path:
    return _folder() / "retired" / f"{_hash(name)}.json"


def _hash(name: str) -> str:
    if not _HASH.match(name):
        raise BadSkill(f"{name!r:.60} is not the hash of a skill")
    return name


def _move(old: Path, new: Path, name: str) -> None:
    atomic.private_folder(new.parent)
    try:
        old.replace(new)
    except FileNotFoundError as error:
        if new.exists():
            raise BadSkill(f"skill {name[:8]} is {'retired' if new == _retired(name) else 'in use'} already") from error
        raise NoSkill(f"there is no skill {name} to move") from error


def _load(path: Path) -> Skill:
    try:
        return _check(json.loads(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise BadSkill(f"{path} holds no skill: {error}") from error


def _write(path: Path, body: bytes) -> None:
    atomic.private_folder(path.parent)
    atomic.write_bytes(path, body, durable=True)


def _canonical(tree: object) -> bytes:
    return json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()


def _haystack(skill: Skill) -> str:
    return " ".join((skill.name, skill.description, skill.task, skill.source)).lower()


def _check(tree: Any) -> Skill:
    """Raises BadSkill."""
    if not isinstance(tree, Mapping) or set(tree) != {f.name for f in dataclasses.fields(Skill)}:
        raise BadSkill("a skill has exactly the fields " + ", ".join(f.name for f in dataclasses.fields(Skill)))
    texts = ("name", "world", "task", "description", "source", "done_when", "session_id")
    wrong = [k for k in texts if not isinstance(tree[k], str) or len(tree[k]) > LONGEST_SOURCE or not is_plain(tree[k])]
    wrong += [k for k in ("episodes", "successes") if type(tree[k]) is not int or not 0 <= tree[k] <= MOST_EPISODES]
    if not wrong and not _NAME.match(tree["name"]):
        wrong.append("name")
    if not wrong and tree["successes"] > tree["episodes"]:
        wrong.append("successes")
    kept_at = tree["kept_at"]
    if type(kept_at) not in (int, float) or not 0 <= kept_at <= LATEST:  # neither is what is no number (NaN)
        wrong.append("kept_at")
    if wrong:
        raise BadSkill(f"the skill's {wrong[0]} is not what it should be: {tree[wrong[0]]!r:.80}")
    return Skill(**tree)
