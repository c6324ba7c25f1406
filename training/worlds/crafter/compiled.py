"""Compiles the rules with numba, or leaves them as they are where numba is missing or `RLGPT_NUMBA=0`.

Compiled code is cached in the user's cache folder, by a hash of the sources and package versions that it depends on:
numba's own cache does not notice a change in a function that a cached one calls.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

from rlgpt.store.home import cache

F = TypeVar("F", bound=Callable[..., Any])

_SOURCES = (
    "compiled", "names", "layout", "words", "random_stream", "ground", "noise", "terrain", "player", "creatures",
    "population", "rules", "senses", "painting",
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
    """The folder with the compiled code of these sources and versions."""
    digest = hashlib.blake2b(digest_size=8)
    for name in _SOURCES:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    for package in ("numba", "llvmlite", "opensimplex", "numpy"):
        digest.update(version(package).encode())
    return cache() / "numba" / digest.hexdigest()


def compiled(function: F) -> F:
    """Decorator for a part of the rules, which is compiled together with the entry point that calls it."""
    return function if numba is None else cast(F, numba.njit(function))


def entry(function: F) -> F:
    """Decorator for a function that Python calls. It runs without the global interpreter lock, and its machine code is
    cached between runs where the cache folder can be written."""
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
