"""What an episode reached, what each of its frames shows being done, and the env steps of each option in training.

Nothing of it can be told of sessions that did not record it, so those rows keep NULL.
"""

from __future__ import annotations

from alembic import op

from rlgpt.store import schema

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for statement in schema.additions(revision):
        op.execute(statement)
