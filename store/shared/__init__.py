"""A store in PostgreSQL that a team shares: the same rows as in a session's folder, and who may write them now.

A worker goes on writing its own folder; its keeper pushes what is new. Nothing here is in the path of a training step.
The only package that imports psycopg, which the extra `rlgpt[postgres]` installs.
"""
