"""Real Minecraft through the `minedojo` package, in a child process under its own interpreter.

`child.py` is the bridge child (one file, Python 3.9); `bridge` starts it, talks to it and ends it; `env` and `world`
offer it by the world protocol; `host_side` is what the action host imports; `install` and `doctor` are the two
commands that make and check the child's environment. Nothing here is needed for any other world.
"""
