"""The report of a session: one self-contained HTML page for people who were not there."""
