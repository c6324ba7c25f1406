"""How long a test waits for what must come before it says that something hangs."""

PATIENCE = 5
"""Times as long as on an idle machine: slowness says something about the machine, nothing about the code."""
