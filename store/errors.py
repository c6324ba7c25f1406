"""Errors of the store. Each has the sentence for the operator as its only argument."""

from __future__ import annotations


class StoreError(Exception):
    """Base of everything here; `str(error)` is one clear sentence."""


class NoSession(StoreError):
    """Nothing, or more than one thing, answers to that id or name."""


class Ambiguous(NoSession):
    """More than one thing answers to that id or name."""


class BadSkill(StoreError):
    """A skill that is not there, or a file that holds none."""


class NoSkill(BadSkill):
    """Nothing, or more than one thing, answers to that hash or name."""


class LeaseTaken(StoreError):
    """Another worker has the session."""


class BadPlace(StoreError):
    """A folder that cannot hold sessions: a network file system, no space, no permission."""


class AlreadyThere(StoreError):
    """A file, folder or session that would have to be replaced; nothing was written."""


class MissingExtra(StoreError):
    """An optional package that this machine lacks; the sentence has the install line."""


class BadSchema(StoreError):
    """A database that this version cannot read or may not change."""


class Damaged(StoreError):
    """The files of a session are not what was written."""


class BadValue(StoreError):
    """A setting, or a value of one, that cannot be."""


class BadRow(StoreError):
    """A value that no column can hold; a mistake of the caller, nothing was written."""


class DiskFull(StoreError):
    """The transaction was rolled back whole; everything before it is safe."""


class WriteFailed(StoreError):
    """Any other refusal of the database; the transaction was rolled back whole."""


class NotAllowed(StoreError):
    """The store of a team does not let this user do that."""


class Away(StoreError):
    """The store of a team does not answer now; it may again."""


class TakesNothing(Away):
    """The store of a team can be read now, and not be written."""


class BadCommand(StoreError):
    """A command that no worker could understand."""


class BadBundle(StoreError):
    """A bundle that is damaged or hostile; nothing of it was kept."""


class ReadOnly(StoreError):
    """The session lies where nothing can be written, such as a bundle on read-only media."""
