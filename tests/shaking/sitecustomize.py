"""Shakes or halts a process that a test starts, without a hook in the product.

Python imports a module of this name at its start where its folder is on PYTHONPATH.
"""

import os
import sys

if os.environ.get("RLGPT_TEST_SHAKE") and "-c" not in sys.orig_argv[1:4]:  # of some of those a test asks their imports
    import delays

    delays.shake()
    delays.pause()
if os.environ.get("RLGPT_TEST_HALT"):
    import halting

    halting.halt()
