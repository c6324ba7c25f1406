"""What the operator sees and types: the command line, the Textual app, its screens and panes.

Reads sessions from the store and inserts commands into it; never imports what a session does (no torch,
stable_baselines3 or gymnasium).
"""
