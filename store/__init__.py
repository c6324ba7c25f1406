"""What is remembered: tables, the writer, the fold of a session's rows, commands, migrations, bundles.

Imports nothing of the other folders.
"""
