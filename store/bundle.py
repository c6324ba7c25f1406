"""One file that holds a session: `session.db`, its artifacts, and a manifest with the hash of each.

A bundle comes from anywhere, so it is believed in nothing: names, sizes and hashes are checked while it is
unpacked, the database must have exactly the tables, indexes and triggers of its revision (no view, no other
trigger), its rows must be well-formed, hold values that a session can have, and fold. Only then does it become a
session. Nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import os
import re
import sqlite3
import struct
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from rlgpt.store import atomic, foreign, revision
from rlgpt.store.errors import BadBundle, BadPlace, Damaged, DiskFull, StoreError
from rlgpt.store.folder import ARTIFACTS, DATABASE, ID, Place, SessionFolder, free_bytes, path_of, prepare, root
from rlgpt.store.snapshot import copy_database, without_evidence_bulk
from rlgpt.store.soundness import check_database
from rlgpt.store.sqlite_errors import is_full

FORMAT = "rlgpt-bundle-1"
MANIFEST = "manifest.json"
EVIDENCE_BYTES = 1_000_000
MOST_FILES = 20_000
MOST_BYTES = 50_000_000_000
MOST_MANIFEST = 10_000_000
DENSEST = 200
"""Times a bundle's files may be larger than the bundle, beyond the first 100 MB."""
_MEMBER = re.compile(r"(session\.db|artifacts/[0-9a-f]{32})\Z")
_CHUNK = 1 << 20


def export_bundle(place: Place, target: Path, *, evidence: bool = False, must_be_new: bool = False) -> Path:
    """Write the session, as it is now, to `target`; returns it.

    `evidence`: without frames, logs, prompts, replies and checkpoints, for a claim's footnote: at most 1 MB.
    `must_be_new`: a file that is there by the end is not replaced. Raises BadSchema, StoreError; FileExistsError.
    """
    folder = SessionFolder(path_of(place))
    with atomic.scratch_folder(target) as scratch:
        copy, partial = scratch / DATABASE, scratch / "bundle"
        copy_database(folder.database, copy)
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as base:
            if revision.found(base, folder.database) < revision.REVISION:
                from rlgpt.store.migrations import upgrade  # late: Alembic costs half a second

                upgrade(base, folder.database)
            session_id = str(base.execute("SELECT session_id FROM session").fetchone()[0])
        if evidence:
            without_evidence_bulk(copy)
        members: dict[str, Path] = {}
        if not evidence:
            files = [p for p in folder.artifact_files() if not p.name.startswith(".")]
            members = {f"{ARTIFACTS}/{path.name}": path for path in files}
        members[DATABASE] = copy  # last: meanwhile PPO replaces its checkpoints
        _pack(partial, session_id, members, evidence)  # a copied folder may have another name
        if evidence and (size := partial.stat().st_size) > EVIDENCE_BYTES:
            raise StoreError(f"the evidence of session {folder.id} takes {size} bytes, more than {EVIDENCE_BYTES}")
        if must_be_new:
            atomic.publish_new(partial, target)
        else:
            partial.replace(target)
    return target


def import_bundle(source: Path) -> SessionFolder:
    """Make the bundle's session one of this store, under its own id. Raises AlreadyThere, BadBundle, BadPlace."""
    with _opened(source, root()) as (archive, manifest):
        staged = prepare(str(manifest["id"]))
        try:
            _unpack(archive, manifest, staged.staging)
            check_database(staged.staging / DATABASE, str(manifest["id"]))
            foreign.mark(staged.staging)
            return staged.publish()
        except BaseException:
            staged.drop()
            raise


@contextlib.contextmanager
def viewed(source: Path) -> Iterator[SessionFolder]:
    """The bundle as a folder to read, checked as an import is, gone afterwards; the store is not touched."""
    with tempfile.TemporaryDirectory(prefix="rlgpt-") as scratch:
        with _opened(source, Path(scratch)) as (archive, manifest):
            folder = Path(scratch) / str(manifest["id"])
            (folder / ARTIFACTS).mkdir(parents=True, mode=0o700)
            _unpack(archive, manifest, folder)
            check_database(folder / DATABASE, str(manifest["id"]))
        yield SessionFolder(folder)


def is_bundle(path: Path) -> bool:
    return path.is_file() and zipfile.is_zipfile(path)


# ---- packing --------------------------------------------------------------------------------------
def _pack(target: Path, session_id: str, members: dict[str, Path], evidence: bool) -> None:
    descriptor = os.open(target, os.O_CREAT | os.O_RDWR | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w+b") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {}
        for name, path in members.items():
            try:
                body = path.open("rb")
            except FileNotFoundError:  # a rollout checkpoint, superseded meanwhile
                continue
            except OSError as error:
                raise BadPlace(f"{path} cannot be read: {error.strerror}") from error
            with body:
                size, digest = _add(archive, name, body)
            if name.startswith(f"{ARTIFACTS}/") and name.removeprefix(f"{ARTIFACTS}/") != digest:
                raise Damaged(f"the file {path} is damaged: its content is not what its name says")
            files[name] = {"size": size, "blake2b": digest}
        manifest = {
            "format": FORMAT,
            "id": session_id,
            "schema": revision.REVISION,
            "made_at": time.time(),
            "evidence": evidence,
            "files": files,
        }
        _add(archive, MANIFEST, io.BytesIO(json.dumps(manifest, indent=1).encode()))


def _add(archive: zipfile.ZipFile, name: str, body: IO[bytes]) -> tuple[int, str]:
    """Pack a file in one reading, since it may be gone at the second; returns its size and hash. It gets no date of its
    own: ZIP knows none before 1980, where the clock of a small machine or of an unpacked archive may stand."""
    info = zipfile.ZipInfo(name)
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
    state, size = blake2b(digest_size=16), 0
    with archive.open(info, "w", force_zip64=True) as packed:
        while chunk := body.read(_CHUNK):
            state.update(chunk)
            size += len(chunk)
            packed.write(chunk)
    return size, state.hexdigest()


# ---- unpacking ------------------------------------------------------------------------------------
_UNPACKABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    UnicodeDecodeError,
    NotImplementedError,
    RuntimeError,
    EOFError,
)
"""What zipfile raises where bytes of an archive are changed; the fifth for a name that its flags call UTF-8."""


@contextlib.contextmanager
def _opened(source: Path, into: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """`into`: the folder on whose disk it is unpacked. Raises BadBundle before anything is unpacked if the names, sizes
    or the manifest are not right; DiskFull."""
    try:
        with zipfile.ZipFile(source) as archive:
            yield archive, _manifest(source, archive, into)
    except _UNPACKABLE as error:
        raise BadBundle(f"{source} is no bundle, or a damaged one: {error}") from error
    except OSError as error:
        if is_full(error):
            raise DiskFull(f"the disk of {into} is full: nothing of {source} was kept") from error
        raise BadBundle(f"{source} cannot be read: {error.strerror or error}") from error


def _manifest(source: Path, archive: zipfile.ZipFile, into: Path) -> dict[str, Any]:
    infos = archive.infolist()
    if len(infos) > MOST_FILES:
        raise BadBundle(f"{source} holds {len(infos)} files; a bundle has at most {MOST_FILES}")
    names = [info.filename for info in infos]
    if len(set(names)) != len(names) or MANIFEST not in names or DATABASE not in names:
        raise BadBundle(f"{source} is no bundle: it needs one {MANIFEST} and one {DATABASE}")
    strange = [n for n in names if n != MANIFEST and not _MEMBER.match(n)]
    if strange:
        raise BadBundle(f"{source} holds {strange[0]!r:.80}, which no bundle holds")
    total = sum(info.file_size for info in infos)
    if total > min(MOST_BYTES, 100_000_000 + DENSEST * source.stat().st_size):
        raise BadBundle(f"{source} would unpack to {total} bytes, far more than a session of its size holds")
    if total > (free := free_bytes(into)):
        needed = f"{source} unpacks to {-(-total // 1_000_000)} MB"
        raise DiskFull(f"{needed}, and {free // 1_000_000} MB are free on the disk of {into}")
    if archive.getinfo(MANIFEST).file_size > MOST_MANIFEST:
        raise BadBundle(f"{source} is no bundle: its manifest is too large")
    try:
        manifest = json.loads(archive.read(MANIFEST))
        ok = manifest["format"] == FORMAT and ID.match(manifest["id"])
        ok = ok and isinstance(manifest["files"], dict) and set(manifest["files"]) == set(names) - {MANIFEST}
        schema = str(manifest["schema"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadBundle(f"{source} is no bundle: its manifest cannot be read ({error})") from error
    if not ok:
        raise BadBundle(f"{source} is no bundle: its manifest does not fit its files")
    if schema > revision.REVISION:
        raise BadBundle(f"{source} has schema {schema:.20}, newer than this rlgpt's: update rlgpt to open it")
    return dict(manifest)


def _unpack(archive: zipfile.ZipFile, manifest: dict[str, Any], folder: Path) -> None:
    """Every member to its place, never past its declared size, only with its declared hash."""
    for name, declared in manifest["files"].items():
        target = folder / name
        state, left = blake2b(digest_size=16), archive.getinfo(name).file_size
        descriptor = os.open(target, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file, archive.open(name) as body:
            while chunk := body.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise BadBundle(f"{name} is larger than the bundle says")
                state.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        digest = state.hexdigest()
        if not isinstance(declared, dict) or declared.get("blake2b") != digest:
            raise BadBundle(f"{name} is not what the bundle's manifest says: it was damaged or changed")
        if name.startswith(f"{ARTIFACTS}/") and name.removeprefix(f"{ARTIFACTS}/") != digest:
            raise BadBundle(f"{name} is not what its name says")
