"""A session in other forms: a bundle, JSON lines, CSV tables, TensorBoard event files.

`export` writes any of them; bundles and JSON lines come back by `import_`. Nothing here changes a session.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from rlgpt.store.bundle import export_bundle, import_bundle, is_bundle
from rlgpt.store.errors import AlreadyThere, BadPlace, StoreError
from rlgpt.store.export.lines import export_lines, import_lines
from rlgpt.store.export.tensorboard import export_tensorboard
from rlgpt.store.export.values import export_csv
from rlgpt.store.folder import Place, SessionFolder, path_of, require_outside
from rlgpt.store.soundness import explained


class Format(NamedTuple):
    write: Callable[[Place, Path], Path]
    tail: str
    """What the session's id is followed by in the default name."""
    about: str


def _bundle(place: Place, target: Path) -> Path:
    return export_bundle(place, target, must_be_new=True)


def _evidence(place: Place, target: Path) -> Path:
    return export_bundle(place, target, evidence=True, must_be_new=True)


FORMATS: Mapping[str, Format] = {
    "bundle": Format(_bundle, ".rlgpt", "everything in one file, to import or to look at elsewhere"),
    "evidence": Format(_evidence, "-evidence.rlgpt", "a bundle of at most 1 MB: no frames, logs, prompts, checkpoints"),
    "jsonl": Format(export_lines, ".jsonl", "one JSON object a row; can be imported, without checkpoints"),
    "csv": Format(export_csv, "-csv", "a folder with one table a file"),
    "tensorboard": Format(export_tensorboard, "-tensorboard", "a folder of event files, one run a folder"),
}


def export(place: Place, form: str, target: Path | None = None) -> Path:
    """Write the session as `form` to `target` (by default beside nothing: here, named by its id); returns it.

    Raises StoreError for an unknown form, AlreadyThere, BadPlace if the target cannot be written, Damaged.
    """
    if form not in FORMATS:
        raise StoreError(f"there is no export format {form!r:.40}; there are {', '.join(FORMATS)}")
    target = target or Path(SessionFolder(path_of(place)).id + FORMATS[form].tail)
    if target.exists():
        raise AlreadyThere(f"{target} is already there")
    require_outside(target)
    if damage := explained(SessionFolder(path_of(place)).database):
        raise damage
    try:
        if target.is_symlink():  # to a file that is not there yet: a rename would replace the link
            target = Path(os.path.realpath(target))
        target.parent.mkdir(parents=True, exist_ok=True)
        return FORMATS[form].write(place, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # another export was faster
            raise AlreadyThere(f"{target} is already there") from error
        raise BadPlace(f"{target} cannot be written: {error.strerror or error}") from error


def import_(source: Path) -> SessionFolder:
    """Make a bundle or a file of JSON lines a session of this store. Raises AlreadyThere, BadBundle, BadPlace."""
    with source.open("rb") as file:
        is_lines = file.read(1) == b"{" or source.suffix == ".jsonl"  # `export --output` takes any name
    return import_lines(source) if is_lines and not is_bundle(source) else import_bundle(source)
