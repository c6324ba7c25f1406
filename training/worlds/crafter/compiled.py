"""Compiles the rules with numba, or leaves them as they are where numba is missing or `RLGPT_NUMBA=0`.

Compiled code is cached per fingerprint of the sources and versions that decide it, in the user's cache
folder: numba itself would not notice a change in a function that a cached one calls.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

import platformdirs

F = TypeVar("F", bound=Callable[..., Any])

_SOURCES = (
    "compiled", "names", "layout", "words", "random_stream", "ground", "terrain", "player", "creatures", "population",
    "rules", "senses",
)  # fmt: skip


def _numba() -> Any:
    if os.environ.get("RLGPT_NUMBA") == "0":
        return None
    try:
        import numba
    except ImportError:
        return None
    return numba


numba = _numba()
COMPILED = numba is not None


def cache_folder() -> Path:
    """Where the compiled code of exactly these sources lies."""
    digest = hashlib.blake2b(digest_size=8)
    for name in _SOURCES:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    for package in ("numba", "llvmlite", "opensimplex", "numpy"):
        digest.update(version(package).encode())
    return Path(platformdirs.user_cache_dir("rlgpt")) / "numba" / digest.hexdigest()


def compiled(function: F) -> F:
    """A part of the rules: compiled together with the entry point that calls it."""
    return function if numba is None else cast(F, numba.njit(function))


def entry(function: F) -> F:
    """A function called from Python, which lets other threads run meanwhile: its machine code is kept between runs, if
    a folder can be written."""
    if numba is None:
        return function
    previous = numba.config.CACHE_DIR
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        numba.config.CACHE_DIR = str(folder)
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except (OSError, RuntimeError):
        return cast(F, numba.njit(nogil=True)(function))
    finally:
        numba.config.CACHE_DIR = previous
