"""A stand-in for a supervisor: takes the session's lock, waits if told to, and writes how it ended.

`python ending.py FOLDER STATUS SECONDS`; with STATUS `dies` it leaves nothing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rlgpt.store.epilogue import append_event
from rlgpt.store.events import Ended
from rlgpt.store.lease import Lease

folder, status, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
with Lease.acquire(folder):
    time.sleep(seconds)
    if status != "dies":
        append_event(folder, Ended(status, "as told"))
