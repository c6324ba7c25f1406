"""What is said to an operator of an error in a process that the console started, and the exit code it stands for."""

from __future__ import annotations

import errno
from typing import NamedTuple

from rlgpt.store.errors import BadPlace, DiskFull, StoreError
from rlgpt.store.settings import Refused
from rlgpt.training.experiments.declared import Undeclared
from rlgpt.training.host.client.errors import HostError
from rlgpt.training.session.creation import UNAVAILABLE, USAGE, CannotCreate
from rlgpt.training.worlds.protocol import UnknownTask, WorldFailed
from rlgpt.training.worlds.registry import UnknownWorld, WorldLacksSomething

OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE)


class Refusal(NamedTuple):
    sentence: str
    exit_code: int


def refusal_of(error: BaseException) -> Refusal | None:
    """None for an error that nobody foresaw: its traceback is worth more than a sentence."""
    match error:
        case CannotCreate():
            return Refusal(str(error), error.code)
        case WorldLacksSomething():
            return Refusal(str(error), UNAVAILABLE)
        case UnknownTask() | UnknownWorld():
            return Refusal(str(error.args[0]), USAGE)  # a KeyError puts its sentence in quotes
        case WorldFailed() | BadPlace() | DiskFull():
            return Refusal(str(error), UNAVAILABLE)
        case OSError():
            sentence = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            return Refusal(sentence, UNAVAILABLE if error.errno in OF_THE_MACHINE else USAGE)
        case HostError() | StoreError() | Refused() | Undeclared():
            return Refusal(str(error), USAGE)
    return None
