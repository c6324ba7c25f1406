"""What the operator sees and types: the command line, the Textual app, its screens and panes.

Reads sessions from the store and inserts commands into it; never imports what a session does (no torch,
stable_baselines3 or gymnasium).
"""

import os

os.environ.setdefault("TEXTUAL_FPS", "120")
"""Textual gathers changes between two frames: at 60 a second a key press waits up to 17 ms before it is drawn."""
