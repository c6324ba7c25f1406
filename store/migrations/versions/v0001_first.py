"""The first released schema."""

from alembic import op

from rlgpt.store import schema

revision = "0001"
down_revision = None


def upgrade() -> None:
    for statement in schema.statements(revision):
        op.execute(statement)
