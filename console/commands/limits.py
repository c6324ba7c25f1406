"""What the limits of this shell (`ulimit`) leave for a session, looked at before one is started.

A process below them does not fail with a sentence: its libraries try again for ever, or it is killed.
"""

from __future__ import annotations

import resource
from typing import NamedTuple

from rlgpt.console.commands.failure import Exit, Failure

MOST_SESSIONS = 50
"""That one command or form starts at once."""


class Need(NamedTuple):
    limit: int
    flag: str
    least: int
    shown: str
    """`least` as `ulimit` takes it."""
    what: str


NEEDS = (
    Need(resource.RLIMIT_AS, "-v", 2 << 30, "2097152", "address space"),
    Need(resource.RLIMIT_NOFILE, "-n", 64, "64", "open files"),
    Need(resource.RLIMIT_CPU, "-t", 60, "60", "processor time"),
)
"""A worker in Crafter maps 1.0 GB (VmPeak, without a GPU): twice that. Sixteen open files are too few for its action
host."""


def need_room() -> None:
    """Raises Failure where a limit of this process, which a session would inherit, is too small for one."""
    for need in NEEDS:
        soft, _ = resource.getrlimit(need.limit)
        if soft != resource.RLIM_INFINITY and soft < need.least:
            raise Failure(
                f"this shell limits the {need.what} of every process to less than a session needs: raise it with "
                f"`ulimit {need.flag} {need.shown}` or more, or `ulimit {need.flag} unlimited`.",
                Exit.UNAVAILABLE,
            )
