"""Exit codes, and the one exception that the command line shows as a sentence."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Documented in the README; the numbers are a contract."""

    OK = 0
    ERROR = 1
    """Something unexpected; the traceback is shown."""
    USAGE = 2
    """A word, flag, task, world or value that does not exist."""
    NOT_FOUND = 3
    """Nothing, or more than one thing, answers to that id or name."""
    REFUSED = 4
    """Understood and not done: another worker, a stale revision, a session in the wrong state, a file that is there."""
    UNAVAILABLE = 5
    """This machine lacks something: a key, space, permission, a program, a newer rlgpt, a session's files unharmed."""
    FAILED = 6
    """The session ended as failed, or some of an experiment are not done."""
    STOPPED = 7
    """The session was stopped before its end."""
    BUDGET = 8
    """The session ended because a budget was reached."""
    DIFFERENT = 9
    """A check ran to its end and found something wrong."""
    INTERRUPTED = 130


def code_of(error: Exception) -> Exit:
    """Of an error of the store, which command has met it."""
    from rlgpt.store import errors  # late: each module of ours costs a moment of every command

    codes: dict[type[errors.StoreError], Exit] = {
        errors.NoSession: Exit.NOT_FOUND,
        errors.NoSkill: Exit.NOT_FOUND,
        errors.BadPlace: Exit.UNAVAILABLE,
        errors.BadSchema: Exit.UNAVAILABLE,
        errors.MissingExtra: Exit.UNAVAILABLE,
        errors.Damaged: Exit.UNAVAILABLE,
        errors.DiskFull: Exit.UNAVAILABLE,
        errors.BadBundle: Exit.USAGE,
        errors.BadCommand: Exit.USAGE,
        errors.BadValue: Exit.USAGE,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), Exit.REFUSED)


class Failure(Exception):
    """One clear sentence for the operator, and the exit code."""

    def __init__(self, sentence: str, code: Exit = Exit.REFUSED) -> None:
        super().__init__(sentence)
        self.code = code
