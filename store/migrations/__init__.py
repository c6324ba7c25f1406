"""Brings an older database to this schema, revision by revision. Imported only when the revision differs.

A live session is migrated under its writer's lock and in one transaction; a bundle as a copy. Within a major
version a revision only adds: an older reader of a newer minor schema is refused, never misled.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from rlgpt.store.errors import BadSchema
from rlgpt.store.revision import REVISION


def upgrade(base: sqlite3.Connection, path: Path, to: str = REVISION) -> None:
    """Migrate the open database, no transaction open, up to `to`. Raises BadSchema; then it is as it was.

    Content tables refuse changes, so a revision that must touch rows drops the triggers and makes them again.
    """
    engine = create_engine("sqlite://", creator=lambda: base, poolclass=StaticPool)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)
    with engine.connect() as connection:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            context = MigrationContext.configure(connection)
            missing = list(script.iterate_revisions(to, context.get_current_revision()))
            with Operations.context(context):
                for revision in reversed(missing):
                    revision.module.upgrade()
            context.stamp(script, to)
            connection.exec_driver_sql("COMMIT")
        except Exception as error:
            if base.in_transaction:
                base.execute("ROLLBACK")
            raise BadSchema(f"{path} could not be brought to schema {to}, it is as it was: {error}") from error


def upgraded_copy(base: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """A copy of an older database in this schema, for who must not touch the database itself. Raises BadSchema.

    SQLite keeps it in memory and, what does not fit, in a file that nobody else sees
    (https://sqlite.org/inmemorydb.html#temp_db).
    """
    copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    try:
        copy.execute("PRAGMA trusted_schema=OFF")
        base.backup(copy)
        upgrade(copy, path)
    except BaseException:
        copy.close()
        raise
    return copy
