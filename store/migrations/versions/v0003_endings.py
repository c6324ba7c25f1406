"""How episodes end becomes columns: what killed the agent, and what an evaluation's lost episodes looked like.

Nothing of it can be told of sessions that did not record it, so those rows keep NULL.
"""

from __future__ import annotations

from alembic import op

from rlgpt.store import schema

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for statement in schema.additions(revision):
        op.execute(statement)
