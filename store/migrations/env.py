"""Run by Alembic: the connection and its transaction are the caller's (`upgrade`)."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
