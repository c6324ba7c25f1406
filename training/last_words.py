"""The sentence with which a worker ends, on a marked line: others print too, some when the interpreter ends (`atexit`).

Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_MARK = "last words: "


def say(sentence: str) -> None:
    """To the supervisor, which reads what this process prints; on a line of its own: a progress bar leaves one open."""
    print(f"\n{_MARK}{' '.join(sentence.split())}", file=sys.stderr, flush=True)


def last(lines: Sequence[str]) -> list[str]:
    """The lines with the sentence, where one was said, as the last of them."""
    said = [line.removeprefix(_MARK) for line in lines if line.startswith(_MARK)]
    return [line for line in lines if not line.startswith(_MARK)] + said[-1:]
